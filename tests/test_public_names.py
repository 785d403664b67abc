"""The public names of the package, their completion and their signatures."""

import inspect
import subprocess
import sys
from contextlib import suppress

import screwdyn as sd


def public_callables():
    for name in sd.__all__:
        thing = getattr(sd, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{k}", v) for k in getattr(thing, "__all__", ()) if callable(v := getattr(thing, k)))
        elif inspect.isclass(thing):
            yield name, thing
            yield from ((f"{name}.{k}", v) for k, v in inspect.getmembers(thing, callable) if not k.startswith("_"))
        else:
            yield name, thing


def test_signatures_use_short_names_of_array_types():
    texts = {}
    for name, thing in public_callables():
        with suppress(ValueError):  # exception classes have none
            texts[name] = str(inspect.signature(thing))
    assert len(texts) > 100
    spelt_out = ("Union[", "_SupportsArray", "ndarray[")
    assert [name for name, text in texts.items() if any(part in text for part in spelt_out)] == []


def test_the_signature_of_a_method_reads_as_it_is_written():
    assert str(inspect.signature(sd.KinematicTree.jacobian)) == "(self, /, link, q, frame='com')"
    assert (
        str(inspect.signature(sd.revolute)).replace("'", "").startswith("(axis: str | ArrayLike = z, point: ArrayLike")
    )


def test_the_options_of_a_table_are_keywords_that_completion_can_find():
    assert list(inspect.signature(sd.KinematicTree.from_dh).parameters) == ["rows", "convention", "base", "gravity"]


def test_dir_lists_the_public_names_and_no_others():
    # In a separate process: names of modules that are imported on first use must be listed before their import.
    listed = "import screwdyn; print(*(name for name in dir(screwdyn) if not name.startswith('_')))"
    names = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert names == sorted(sd.__all__)
    assert {"io", "robots", "testing"} <= set(names)
    for name in sd.__all__:
        assert getattr(sd, name) is not None


def test_importing_loads_no_package_that_is_only_needed_later():
    heavy = ["casadi", "jax", "llvmlite", "matplotlib", "networkx", "scipy", "sympy", "tqdm", "xacro"]
    shown = f"import sys, screwdyn; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_package_can_be_loaded_again():
    """As notebooks do that reload what has changed; trees made before keep working."""
    again = "\n".join(
        [
            "import importlib, sys, screwdyn",
            "former = screwdyn.robots.two_link()",
            "for name in [name for name in sys.modules if name.split('.')[0] == 'screwdyn']: del sys.modules[name]",
            "import screwdyn",
            "importlib.reload(sys.modules['screwdyn.forms.numbers'])",
            "now = screwdyn.robots.two_link()",
            "print(*(len(tree.mass_matrix([0, 0])) for tree in (former, now)))",
        ]
    )
    assert subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True).stdout == "2 2\n"
