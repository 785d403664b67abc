"""Homes of free joints in MJCF, whose free joints have their positions from the world."""

__all__ = ["home_key"]


def home_key(joint: str) -> str:
    """Name of the custom number that says that q of a free joint is that from the pose of its body in the file."""
    return f"screwdyn_q_from_pose_of_body/{joint}"
