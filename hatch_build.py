"""Build hook: writes the kernels as C and compiles them; without a C compiler the wheel is pure Python."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = "screwdyn/backends/kernels"
# Operations stay as they are written: the same bits on every processor, and in Python. The vectoriser of straight-line
# code makes momenta up to a quarter slower, and the elimination of partial redundancies M of ball joints by 6 %.
# What happens once for each state is one function for all kernels: a quarter less of code, and faster if vectorised.
FLAGS = [
    "-std=c99",
    "-O3",
    "-g0",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-slp-vectorize",
    "-fno-tree-pre",
    "-ffp-contract=off",
    '-DSCREWDYN_APART=__attribute__((noinline, optimize("tree-slp-vectorize")))',
    "-Werror=implicit-function-declaration",
]
MSVC_FLAGS = ["/O2", "/fp:precise", "/std:c11", "/utf-8"]
# The copies that the entry chooses from on x86-64: name, and the instruction sets that it asks the processor for.
LEVELS = {"v3": "avx2 bmi2 fma", "v4": "avx2 bmi2 fma avx512bw avx512cd avx512dq avx512vl"}
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class Hook(BuildHookInterface):
    """Adds the C file to the source distribution, and the compiled kernels to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make what this target needs."""
        self._made = tempfile.TemporaryDirectory()
        folder = Path(self._made.name)
        kernels, given = folder / "kernels.c", Path(self.root, HERE, "kernels.c")
        if given.exists():  # in a source distribution
            shutil.copy(given, kernels)
        else:
            # Without the warning that there are no kernels yet.
            command = [sys.executable, "-W", "ignore", "-m", "screwdyn.backends.kernels.written", str(kernels)]
            subprocess.run(command, cwd=self.root, check=True)  # its PYTHONPATH has what the build requires
        if self.target_name == "sdist":
            build_data["force_include"][str(kernels)] = f"{HERE}/kernels.c"
            return
        here, key = Path(self.root, HERE), self._key(kernels)
        former = [*here.glob("_compiled.*")] if version == "editable" else []
        binaries = [x for x in former if x.suffix != ".key"]
        known = binaries and any(x not in binaries and x.read_text() == key for x in former)
        try:
            binary = binaries[0] if known else compiled(here, folder)
        except NoCompiler as error:
            for path in former:
                path.unlink()  # of other source
            self.app.display_warning(
                f"{error}. screwdyn is installed without compiled kernels, hundreds of times slower."
            )
            return
        if version == "editable" and not known:
            for path in former:
                path.unlink()  # it is not overwritten, because processes may run its code
            shutil.copy(binary, here)
            (here / "_compiled.key").write_text(key)
        build_data["force_include"][str(binary)] = f"{HERE}/{binary.name}"
        build_data["pure_python"] = False
        if FREE_THREADED:
            build_data["infer_tag"] = True
        else:
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def _key(self, kernels: Path) -> str:
        """What the compiled kernels depend on, in short: a clone that has not changed keeps its own."""
        import numpy as np

        read = [kernels, *sorted(Path(self.root, HERE).glob("*.[ch]")), Path(__file__)]
        around = f"{np.__version__} {sys.implementation.cache_tag} {sysconfig.get_platform()} {os.environ.get('CC')}"
        return hashlib.sha256(b"".join(x.read_bytes() for x in read) + around.encode()).hexdigest()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        self._made.cleanup()


class NoCompiler(Exception):
    """There is no C compiler, or it does not find Python's headers."""


def compiled(source: Path, folder: Path) -> Path:
    """The extension module, made in a folder that contains the kernels.

    Raises
    ------
    NoCompiler
        If even a file that only includes Python's header does not compile. Any other error is ours.
    """
    import numpy as np
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        works = False

        def build_extension(self, extension: Extension) -> None:
            """Try the compiler, then compile the files side by side."""
            trial, compile_one = folder / "trial.c", self.compiler.compile
            trial.write_text("#include <Python.h>\nint screwdyn_trial;\n")
            compile_one([str(trial)], output_dir=self.build_temp, include_dirs=extension.include_dirs)
            self.works = True

            def of_level(file: str, extra_postargs: list[str], **options: Any) -> list[str]:
                features = LEVELS.get(Path(file).stem.removeprefix("kernels_"), "").split()
                found: list[str] = compile_one(
                    [file], extra_postargs=[*extra_postargs, *(f"-m{x}" for x in features)], **options
                )
                return found

            def side_by_side(files: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    return [x for found in pool.map(lambda file: of_level(file, **options), files) for x in found]

            self.compiler.compile = side_by_side
            super().build_extension(extension)

    files = [folder / "kernels.c", source / "entry.c"]
    # The same on every system, whose ends of lines differ.
    digest = hashlib.sha256(files[0].read_text(encoding="utf-8").encode()).hexdigest()
    macros = [("SCREWDYN_API", "static"), ("SCREWDYN_DIGEST", digest)]
    # Python.h must know it from its first line, before which it has not read its own configuration.
    macros.append(("Py_GIL_DISABLED", "1") if FREE_THREADED else ("Py_LIMITED_API", "0x030B0000"))
    if sysconfig.get_platform().endswith("x86_64"):  # Windows and universal binaries of macOS have other names
        macros.append(("SCREWDYN_LEVELS", "1"))
        for level in LEVELS:
            files.append(folder / f"kernels_{level}.c")
            files[-1].write_text(f'#define screwdyn_kernels screwdyn_kernels_{level}\n#include "kernels.c"\n')
    extension = Extension(
        "_compiled",
        [str(file) for file in files],
        include_dirs=[str(source), str(folder), np.get_include()],
        extra_compile_args=MSVC_FLAGS if sys.platform == "win32" else FLAGS,
        define_macros=macros,
        py_limited_api=not FREE_THREADED,
    )
    build = Build(Distribution({"name": "screwdyn", "ext_modules": [extension]}))
    build.build_lib, build.build_temp = str(folder / "lib"), str(folder / "temp")
    build.ensure_finalized()
    try:
        build.run()
    except Exception as error:
        if build.works:
            raise
        raise NoCompiler(f"No C compiler with Python's headers ({error})") from error
    (binary,) = Path(build.build_lib).iterdir()
    return binary
