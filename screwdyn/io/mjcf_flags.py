"""Reader of MJCF: the flags of a compiled model that take terms out of its equations of motion."""

from __future__ import annotations

from typing import Any

__all__ = ["disabled", "sleeps"]

# Flags that disable what others do, too: MuJoCo skips all passive forces if there are neither springs nor dampers.
# "passive" is that of MuJoCo before it had "spring" and "damper".
_IMPLIED = (
    ({"constraint"}, {"equality", "frictionloss", "limit"}),
    ({"passive"}, {"spring", "damper"}),
    ({"spring", "damper"}, {"medium", "gravcomp"}),
    ({"gravity"}, {"gravcomp"}),
)


def disabled(model: Any) -> set[str]:
    """What the flags of a model disable: their names in MJCF, and "medium" and "gravcomp"."""
    import mujoco

    flags = mujoco.mjtDisableBit.__members__.items()  # their values depend on the version
    found = {name.removeprefix("mjDSBL_").lower() for name, bit in flags if model.opt.disableflags & int(bit)}
    for given, implied in _IMPLIED:
        found |= implied if found >= given else set()
    return found


def sleeps(model: Any) -> bool:
    """Whether MuJoCo may hold bodies still that hardly move."""
    import mujoco

    flag = mujoco.mjtEnableBit.__members__.get("mjENBL_SLEEP")  # which earlier versions do not have
    return flag is not None and bool(model.opt.enableflags & int(flag))
