#!/usr/bin/env python3
# /// script
# dependencies = ["nox>=2025.10"]
# ///
"""The tasks of this project, for contributors and for .ci/run: ``nox -s lint``, ``nox --list``.

Tasks use the environment that nox runs in. Those for other versions of Python or of the dependencies make their own.
"""

import shutil
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import nox

PYPROJECT = nox.project.load_toml("pyproject.toml")
BIN = Path(sys.executable).parent
# Tests that may depend on the version of Python: of the entry, threads and forks, and what all else is built on.
ON_OTHER_PYTHONS = [
    *(f"tests/{package}" for package in ("core", "mechanism", "physics")),
    *(f"tests/backends/test_{name}.py" for name in ("llvm", "entry", "kernels", "background", "program", "disk")),
    *(f"tests/forms/test_{name}.py" for name in ("compiled", "compiled_input", "numbers_input")),
    "tests/test_tree.py",
]
# Further tests that may depend on the versions of the dependencies: of integrators, optimization, closed forms, C
# source and figures.
ON_OTHER_VERSIONS = [
    "tests/simulation",
    *(f"tests/papers/test_{name}.py" for name in ("costs", "selection", "trajectory", "workspace")),
    *(f"tests/forms/test_{name}.py" for name in ("papers", "symbolic", "symbolic_papers", "requests", "c_parameters")),
    *(f"tests/backends/test_{name}.py" for name in ("trace", "c_statements", "c_symbols")),
    "tests/views",
]

# Tests of the default kernels that need no compiled ones.
IN_PYTHON = ["tests/physics", "tests/test_tree.py"]
NO_KERNELS = "screwdyn has no compiled kernels"
KERNELS = Path("screwdyn/backends/kernels")

nox.needs_version = ">=2025.10"
nox.options.default_venv_backend = "venv"
nox.options.download_python = "never"
# A Python that is absent is skipped, also where CI is set in the environment; .ci/run reports it.
nox.options.error_on_missing_interpreters = False


def here(session: nox.Session, command: str, *arguments: str, **options: dict[str, str]) -> None:
    """Run a command of the environment that nox itself runs in."""
    session.run(str(BIN / command), *arguments, *session.posargs, external=True, **options)


def written(session: nox.Session) -> Path:
    """The C file with the kernels, in the present folder."""
    here(session, "python", "-W", "ignore", "-m", "screwdyn.backends.kernels.written", "kernels.c")
    return Path("kernels.c").resolve()


@nox.session(python=False, default=False)
def format(session: nox.Session) -> None:
    """Format the code and fix lint that ruff can fix."""
    here(session, "ruff", "format")
    here(session, "ruff", "check", "--fix")


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Check formatting, lint and the workflows of GitHub."""
    here(session, "ruff", "format", "--check")
    here(session, "ruff", "check")
    here(session, "zizmor", "--offline", "--quiet", ".github")


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """Check the types."""
    here(session, "mypy")


@nox.session(python=False)
def layers(session: nox.Session) -> None:
    """Check that imports follow docs/architecture.md."""
    here(session, "lint-imports", "--no-logo")


@nox.session(python=False, default=False)
def package(session: nox.Session) -> None:
    """Build the source distribution, and from it the wheel, into dist/; check their metadata, contents and use."""
    shutil.rmtree("dist", ignore_errors=True)
    here(session, "validate-pyproject", "pyproject.toml")
    here(session, "python", "-m", "build")
    archive, wheel = (str(next(Path("dist").glob(f"*.{kind}")).resolve()) for kind in ("tar.gz", "whl"))
    here(session, "twine", "check", "--strict", archive, wheel)
    with tarfile.open(archive) as files:
        packed = {name.partition("/")[2] for name in files.getnames()} - {"PKG-INFO"}
        (kernels,) = (x for x in files if x.name.endswith("/kernels.c"))
        given = files.extractfile(kernels).read()
    tracked = set(str(session.run("git", "ls-files", external=True, silent=True)).splitlines())
    tracked.add(str(KERNELS / "kernels.c"))
    if packed != tracked:
        session.error(f"the source distribution differs from the repository: {sorted(packed ^ tracked)}")
    here(session, "abi3audit", "--strict", "--report", wheel)
    with tempfile.TemporaryDirectory() as elsewhere, session.chdir(elsewhere):
        if given != written(session).read_bytes():
            session.error("the kernels in the source distribution are not those of the formulas")
        here(session, "pip", "install", "-q", "--no-deps", "--target", "installed", wheel)
        installed = {"PYTHONPATH": str(Path("installed").resolve())}
        origin = "import screwdyn; assert 'installed' in screwdyn.__path__[0], screwdyn.__path__"
        here(session, "python", "-c", origin, env=installed)
        here(session, "python", "-m", "screwdyn", "demo", env=installed)


@nox.session(python=False, default=False)
def without_compiler(session: nox.Session) -> None:
    """Install without a C compiler, compare bits with the compiled kernels, and run tests of the plain Python."""
    robots = str(Path("tests/bits.py").resolve())
    compiled = session.run(str(BIN / "python"), robots, external=True, silent=True)
    with tempfile.TemporaryDirectory() as elsewhere:
        bare = {"PATH": str(BIN), "CC": "cc"}
        here(session, "pip", "wheel", "-q", "--no-deps", "-w", elsewhere, ".", env=bare)
        (wheel,) = Path(elsewhere).glob("*.whl")
        if not wheel.name.endswith("-py3-none-any.whl"):
            session.error(f"without a compiler, {wheel.name} was built")
        here(session, "pip", "install", "-q", "--no-deps", "--target", f"{elsewhere}/installed", str(wheel))
        installed = {"PYTHONPATH": f"{elsewhere}/installed"}
        announced = session.run(str(BIN / "python"), robots, external=True, silent=True, env=installed)
        if announced is None or announced.count(NO_KERNELS) != 1 or "C compiler" not in announced:
            session.error(f"the missing kernels are not announced once: {announced}")
        if announced.splitlines()[-1] != compiled.splitlines()[-1]:
            session.error("plain Python gives other bits than the compiled kernels")
        quiet = ("-W", f"ignore:{NO_KERNELS}")
        here(session, "pytest", "-n", "2", *quiet, *IN_PYTHON, env={**installed, "SCREWDYN_SOAK": "brief"})


@nox.session(python=False, default=False)
def sanitizers(session: nox.Session) -> None:
    """Run the tests of the kernels with the sanitizers of GCC for addresses and undefined behaviour."""
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = Path(elsewhere, KERNELS)
        shutil.copytree("screwdyn", Path(elsewhere, "screwdyn"), ignore=shutil.ignore_patterns("_compiled*"))
        with session.chdir(elsewhere):
            kernels = written(session)
        numpy = session.run(str(BIN / "numpy-config"), "--cflags", external=True, silent=True).split()
        flags = "-std=c99 -O0 -g -fPIC -shared -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all"
        macros = "-DSCREWDYN_API=static", "-DSCREWDYN_DIGEST=sanitized"
        folders = f"-I{copy}", f"-I{sysconfig.get_path('include')}", *numpy
        binary = str(copy / "_compiled.abi3.so")
        sources = str(kernels), str(copy / "entry.c")
        session.run("gcc", *flags.split(), *macros, *folders, *sources, "-o", binary, "-lm", external=True)
        found = [
            session.run("gcc", f"-print-file-name=lib{name}.so", external=True, silent=True).strip()
            for name in ("asan", "ubsan")
        ]
        # Python itself never frees some memory.
        run = {"PYTHONPATH": elsewhere, "LD_PRELOAD": " ".join(found), "ASAN_OPTIONS": "detect_leaks=0"}
        used = "from screwdyn.backends.kernels.entry import machine; assert machine.DIGEST == 'sanitized'"
        here(session, "python", "-P", "-c", used, env=run)
        chosen = (f"tests/backends/test_{name}.py" for name in ("kernels", "entry"))
        here(session, "pytest", "-m", "not soak", *chosen, env={**run, "SCREWDYN_SOAK": "brief"})


@nox.session(python=False, default=False)
def wasm(session: nox.Session) -> None:
    """Build the kernels as WebAssembly with Zig, and compare numbers in Node with those of Python; needs node."""
    needed = nox.project.dependency_groups(PYPROJECT, "wasm")
    session.run(sys.executable, "-m", "pip", "install", "-q", *needed, external=True)
    here(session, "pytest", "-m", "wasm", "tests/backends/test_wasm.py")


@nox.session(python=False, default=False)
def oracle(session: nox.Session) -> None:
    """Compare with independent engines; needs the extra oracle and example-robot-data."""
    here(session, "pytest", "-n", "2", "-m", "oracle", "tests/oracle")


@nox.session(python=False, default=False)
def handover(session: nox.Session) -> None:
    """Test functions for JAX and CasADi; needs the extras jax and casadi."""
    here(session, "pytest", "-m", "handover", "tests/backends/test_handover.py", "tests/test_docs.py")


@nox.session(python=False, default=False)
def cluster(session: nox.Session) -> None:
    """Test studies with workers of Dask; needs the extra cluster."""
    here(session, "pytest", "-m", "cluster", "tests/cluster")


@nox.session(python=False, default=False)
def docs(session: nox.Session) -> None:
    """Build the site of the documentation into docs/_build/html and check it; -- -D plot_gallery=0 runs no example."""
    needed = nox.project.dependency_groups(PYPROJECT, "docs")
    session.run(sys.executable, "-m", "pip", "install", "-q", *needed, external=True)
    here(session, "sphinx-build", "-q", "-W", "--keep-going", "docs", "docs/_build/html")
    # The build itself has called the tests of what examples say.
    known = "test_gallery_*" if "plot_gallery=0" in session.posargs else "test_gallery_claims.py"
    ignored = f"--ignore-glob=*/{known}"
    session.run(sys.executable, "-m", "pytest", "-m", "site", "tests/site", ignored, external=True)


@nox.session(python=False, default=False)
def browser(session: nox.Session) -> None:
    """Open pages in a real browser without a network; needs nox -s docs, and Chromium (apt-get install chromium)."""
    here(session, "pytest", "-m", "browser", "tests/views/test_browser.py", "tests/site/test_site_browser.py")


@nox.session(python=False, default=False)
def slow(session: nox.Session) -> None:
    """Run the tests that take a second or more."""
    here(session, "pytest", "-n", "2", "-m", "slow and not soak")


@nox.session(python=False, default=False)
def soak(session: nox.Session) -> None:
    """Run the property tests on many random robots, the same ones each time."""
    here(session, "pytest", "-n", "2", "-m", "soak", env={"SCREWDYN_SOAK": "short"})


@nox.session(python=nox.project.python_versions(PYPROJECT), default=False)
def tests(session: nox.Session) -> None:
    """Run the tests that may depend on the version of Python on the wheel of nox -s package."""
    wheels = [*Path("dist").glob("*.whl")]
    if len(wheels) != 1:
        session.error("dist/ has no wheel to test: run nox -s package")
    session.install(f"{wheels[0]}[test]")
    session.run("pytest", "-n", "2", *(session.posargs or ON_OTHER_PYTHONS), env={"SCREWDYN_SOAK": "brief"})


@nox.session(python=nox.project.python_versions(PYPROJECT)[0], default=False)
def floors(session: nox.Session) -> None:
    """Run the tests that may depend on versions with the lowest Python and dependencies that pyproject.toml allows."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["jax"], *extras["casadi"]]
    wanted += [x for x in PYPROJECT["build-system"]["requires"] if x not in wanted]
    # Old modules are compiled beforehand: their invalid escape sequences are warnings, which are errors in tests.
    pinned = (requirement.replace(">=", "==") for requirement in wanted)
    session.install("--compile", *pinned)
    session.install("--no-deps", "--no-build-isolation", ".")  # editable, it would replace the kernels of the clone
    session.run("pip", "check")
    chosen = session.posargs or [*ON_OTHER_PYTHONS, *ON_OTHER_VERSIONS]
    session.run("pytest", "-n", "2", *chosen, env={"SCREWDYN_SOAK": "brief"})
    session.run("pytest", "-n", "2", "-m", "handover", "tests/backends/test_handover.py")


if __name__ == "__main__":
    nox.main()
