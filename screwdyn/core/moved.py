"""Imports of modules by their former names.

``import screwdyn.joint`` imports ``screwdyn.mechanism.joint``, the same module object.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["install"]

_MOVED = {
    "compiled": "forms.compiled",
    "contribution": "physics.contribution",
    "demo": "cli.demo",
    "derivatives": "forms.derivatives",
    "dynamics": "forms.numbers",
    "errors": "core.errors",
    "expressions": "core.expressions",
    "formulations": "papers.formulations",
    "handover": "backends.handover",
    "identification": "robots.identification",
    "inertia": "mechanism.inertia",
    "joint": "mechanism.joint",
    "link": "mechanism.link",
    "model": "physics.model",
    "padded": "physics.padded",
    "plot": "views.plot",
    "poses": "screws.poses",
    "run": "simulation.result",
    "screw": "screws.screw",
    "screw_system": "screws.screw_system",
    "selection": "papers.selection",
    "simulate": "simulation.simulate",
    "source": "forms.c_source",
    "state": "simulation.state",
    "structure": "mechanism.structure",
    "symbolic": "forms.symbolic",
    "testing": "robots.random_trees",
    "transition": "simulation.impact",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a module by its former name, and imports it by its present name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if _present(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_present(spec.name))
        spec.loader_state = module.__spec__
        _name_again(module, spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Only restore the spec: the module has been executed under its present name."""
        if module.__spec__ is not None and module.__spec__.loader is self:
            module.__spec__ = module.__spec__.loader_state


def _present(fullname: str) -> str:
    """The present name of a module that has moved, or whose package has; empty for all others."""
    package, _, name = fullname.partition(".")
    if package != "screwdyn":
        return ""
    for former, present in _MOVED.items():
        if name == former or name.startswith(f"{former}."):
            return f"screwdyn.{present}{name.removeprefix(former)}"
    return ""


def _name_again(module: ModuleType, former: str) -> None:
    """Enter a module and what is loaded of its submodules under a former name.

    The import of a submodule sets the attribute of its name in the package, which may be a class or a function.
    """
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{module.__name__}.")]:
        sys.modules.setdefault(former + name.removeprefix(module.__name__), sys.modules[name])


def install() -> None:
    """Make the former names importable, and set those of loaded modules at once."""
    package = vars(sys.modules["screwdyn"])
    for former, present in _MOVED.items():
        module = sys.modules.get(f"screwdyn.{present}")
        if module is not None and "." not in former:
            _name_again(module, f"screwdyn.{former}")
            package.setdefault(former, module)  # `simulate` stays the function
    # Before the finder of files, which would load the modules of a moved package a second time.
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
