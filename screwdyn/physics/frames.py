"""The frames in which a link's twist and Jacobian can be given, by the names that users bring."""

from screwdyn.core.errors import ShapeError

__all__ = ["BASE", "BODY", "COM", "FRAMES", "MIXED", "frame_code", "is_frame"]

COM, BODY, BASE, MIXED = range(4)
FRAMES = ("com", "body", "base", "mixed")
# What other libraries call them: Pinocchio's ReferenceFrame, and Drake's and MuJoCo's words.
_ALSO = {"local": BODY, "world": BASE, "space": BASE, "spatial": BASE, "local_world_aligned": MIXED, "hybrid": MIXED}
_CODES = {name: code for code, name in enumerate(FRAMES)} | _ALSO


def is_frame(name: str) -> bool:
    """Whether a name is one of a frame."""
    return name.lower() in _CODES


def frame_code(frame: object) -> int:
    """Number of a frame: ``COM``, ``BODY``, ``BASE`` or ``MIXED``.

    Parameters
    ----------
    frame : str
        "com", "body", "base" or "mixed"; or, in any case, "local" (body), "world", "space" or "spatial" (base),
        "local_world_aligned" or "hybrid" (mixed). Pinocchio's ``ReferenceFrame`` members are taken by their names.

    Raises
    ------
    ShapeError
        For anything else, naming what is known.
    """
    if isinstance(frame, str) and frame in _CODES:
        return _CODES[frame]
    name = frame if isinstance(frame, str) else getattr(frame, "name", None)
    code = _CODES.get(name.lower()) if isinstance(name, str) else None
    if code is None:
        also = ", ".join(f"{name!r} = {FRAMES[code]!r}" for name, code in _ALSO.items())
        raise ShapeError(f"frame must be 'com', 'body', 'base' or 'mixed'; got {frame!r} (also known: {also})")
    return code
