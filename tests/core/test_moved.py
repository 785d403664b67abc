"""Former names of modules: each is the same module as the present name."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn.core import moved

# Names that users could import from modules that have moved.
FORMER = {
    "compiled": ["Compiled"],
    "contribution": ["Contribution"],
    "demo": ["demo"],
    "demo.control": ["ComputedTorque"],
    "demo.task": ["Task", "plan"],
    "derivatives": ["Derivatives"],
    "dynamics": [],
    "errors": list(sd.errors.__all__),
    "expressions": ["floats", "free_symbols"],
    "formulations": ["denoc", "dominance", "lagrange_euler"],
    "formulations.differentiation": ["partial"],
    "handover": [],
    "identification": ["BaseParameters", "identify"],
    "inertia": ["Inertia"],
    "joint": ["Joint", "fixed", "helical", "prismatic", "revolute"],
    "link": ["Link"],
    "model": ["Model"],
    "padded": ["Padded", "padded_sum"],
    "plot": ["plot_run"],
    "poses": ["inverse", "pose", "skew", "unskew"],
    "run": ["Energy", "Grasp", "Happened", "Release", "Run"],
    "screw": ["Ad", "ad", "axis", "exp", "inverse", "log", "pitch", "pose", "screw_from_axis", "skew", "unit"],
    "screw_system": ["reciprocal_system", "system_basis", "system_order"],
    "selection": ["Trajectory", "compare"],
    "selection.workspace": ["Estimate"],
    "simulate": ["simulate"],
    "source": ["c_source"],
    "state": ["State"],
    "structure": ["Handle"],
    "symbolic": ["Symbolic", "SymbolicContribution"],
    "testing": ["random_inertia", "random_pose", "random_tree"],
    "transition": ["FreeBody", "GraspEvent", "ReleaseEvent", "grasp", "release"],
}


def in_a_new_process(program):
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_every_module_that_moved_is_tried():
    assert {name.partition(".")[0] for name in FORMER} == set(moved._MOVED)


@pytest.mark.parametrize("name", FORMER)
def test_a_former_name_is_the_module_under_its_present_name(name):
    module = import_module(f"screwdyn.{name}")
    assert module is sys.modules[module.__name__]
    assert module.__spec__.name == module.__name__ != f"screwdyn.{name}"
    assert [what for what in FORMER[name] if not hasattr(module, what)] == []


@pytest.mark.parametrize("name", ["compiled", "demo.task", "formulations", "joint", "selection.workspace", "simulate"])
def test_a_former_name_may_be_the_first_import_of_a_process(name):
    in_a_new_process(f"""
import screwdyn.{name}, sys
former = sys.modules["screwdyn.{name}"]
assert former is sys.modules[former.__name__] and former.__spec__.name == former.__name__ != "screwdyn.{name}"
from screwdyn.{name} import {FORMER[name][0]}
assert type(screwdyn.simulate).__name__ == "function"
""")


def test_modules_loaded_late_are_not_loaded_twice():
    in_a_new_process("""
import screwdyn.demo.task, screwdyn.cli.demo.task
assert screwdyn.demo.task is screwdyn.cli.demo.task
from screwdyn.demo import control
from screwdyn.cli.demo.control import ComputedTorque
assert control.ComputedTorque is ComputedTorque
""")


@pytest.mark.parametrize("package", ["formulations", "identification", "selection"])
def test_importing_a_submodule_does_not_change_what_its_package_has_under_that_name(package):
    in_a_new_process(f"""
import pkgutil, screwdyn
from importlib import import_module
package = screwdyn.{package}
before = {{name: getattr(package, name) for name in package.__all__}}
for module in pkgutil.iter_modules(package.__path__):
    assert import_module(f"screwdyn.{package}.{{module.name}}").__name__ == f"{{package.__name__}}.{{module.name}}"
assert {{name: getattr(package, name) for name in package.__all__}} == before
import screwdyn.{package} as again
assert again is package is import_module("screwdyn.{package}")
""")


def test_simulate_is_the_function():
    import_module("screwdyn.simulate")
    assert sd.simulate is import_module("screwdyn.simulation.simulate").simulate


def test_an_unknown_module_is_as_unknown_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"screwdyn\.nothing"):
        import_module("screwdyn.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"screwdyn\.link\.nothing"):
        import_module("screwdyn.link.nothing")


@pytest.mark.parametrize(
    ("former", "name"),
    [("inertia", "Inertia"), ("joint", "Joint"), ("link", "Link"), ("padded", "Padded"), ("run", "Grasp")],
)
def test_classes_pickled_under_former_names_are_found(former, name):
    assert pickle.loads(f"cscrewdyn.{former}\n{name}\n.".encode()) is getattr(sd, name)


def test_pickles_hold_present_names():
    inertia = sd.Inertia.box(2.0, (0.1, 0.2, 0.3))
    data = pickle.dumps(inertia)
    assert b"screwdyn.mechanism.inertia" in data
    assert_array_equal(pickle.loads(data).matrix, inertia.matrix)
