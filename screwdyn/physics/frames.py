"""The frames of a link's twist and Jacobian, and their names here and in other libraries."""

from screwdyn.core.errors import ShapeError

__all__ = ["BASE", "BODY", "COM", "FRAMES", "MIXED", "frame_code", "is_frame"]

COM, BODY, BASE, MIXED = range(4)
FRAMES = ("com", "body", "base", "mixed")
# Names of the frames in other libraries, such as Pinocchio's ReferenceFrame.
_ALSO = {"local": BODY, "world": BASE, "space": BASE, "spatial": BASE, "local_world_aligned": MIXED, "hybrid": MIXED}
_CODES = {name: code for code, name in enumerate(FRAMES)} | _ALSO


def is_frame(name: str) -> bool:
    """Whether a string is the name of a frame."""
    return name.lower() in _CODES


def frame_code(frame: object) -> int:
    """Code of a frame: ``COM``, ``BODY``, ``BASE`` or ``MIXED``.

    Parameters
    ----------
    frame : str
        "com", "body", "base" or "mixed"; or "local" (body), "world", "space" or "spatial" (base),
        "local_world_aligned" or "hybrid" (mixed); upper and lower case are equivalent. A member of Pinocchio's
        ``ReferenceFrame`` is converted by its name.

    Raises
    ------
    ShapeError
        For any other frame; the message lists the known names.
    """
    if isinstance(frame, str) and frame in _CODES:
        return _CODES[frame]
    name = frame if isinstance(frame, str) else getattr(frame, "name", None)
    code = _CODES.get(name.lower()) if isinstance(name, str) else None
    if code is None:
        also = ", ".join(f"{name!r} = {FRAMES[code]!r}" for name, code in _ALSO.items())
        raise ShapeError(f"frame must be 'com', 'body', 'base' or 'mixed'; got {frame!r} (also known: {also})")
    return code
