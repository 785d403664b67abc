"""Build hook: writes the kernels as C and compiles them; without a C compiler the wheel is pure Python."""

import os
import platform
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
# code makes the gravity vector a third slower, and the elimination of partial redundancies M of ball joints by 6 %.
FLAGS = (
    "-std=c99 -O3 -g0 -fvisibility=hidden -fno-math-errno -fno-trapping-math -fno-tree-slp-vectorize -fno-tree-pre "
    "-ffp-contract=off -Werror=implicit-function-declaration"
)
# The copies that the entry chooses from: name, and instruction sets.
LEVELS = {
    "v3": "avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt,sse4.2",
    "v4": "avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt,sse4.2,avx512f,avx512bw,avx512cd,avx512dq,avx512vl",
}
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class Hook(BuildHookInterface):
    """Adds the C file to the source distribution, and the compiled kernels to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make what this target needs."""
        self._made = Path(tempfile.mkdtemp())
        kernels, given = self._made / "kernels.c", Path(self.root, HERE, "kernels.c")
        if given.exists():  # in a source distribution
            shutil.copy(given, kernels)
        else:
            command = [sys.executable, "-m", "screwdyn.backends.kernels.written", str(kernels)]
            subprocess.run(command, cwd=self.root, check=True)  # its PYTHONPATH has what the build requires
        if self.target_name == "sdist":
            build_data["force_include"][str(kernels)] = f"{HERE}/kernels.c"
            return
        try:
            binary = compiled(Path(self.root, HERE), self._made)
        except Exception as error:  # of any compiler
            self.app.display_warning(f"No compiled kernels, which makes them about 1000 times slower: {error}")
            return
        if version == "editable":
            shutil.copy(binary, Path(self.root, HERE))
        build_data["force_include"][str(binary)] = f"{HERE}/{binary.name}"
        build_data["pure_python"] = False
        if FREE_THREADED:
            build_data["infer_tag"] = True
        else:
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        shutil.rmtree(self._made)


def compiled(source: Path, folder: Path) -> Path:
    """The extension module, made in a folder that contains the kernels."""
    import numpy as np
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extension(self, extension: Extension) -> None:
            """Compile the files side by side."""
            compile_one = self.compiler.compile

            def side_by_side(files: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    return [x for found in pool.map(lambda file: compile_one([file], **options), files) for x in found]

            self.compiler.compile = side_by_side
            super().build_extension(extension)

    files, macros, flags = [folder / "kernels.c", source / "entry.c"], [("SCREWDYN_API", "static")], FLAGS.split()
    if sys.platform == "win32":
        flags = ["/O2", "/fp:precise", "/std:c11"]
    elif platform.machine() in ("x86_64", "AMD64"):
        macros.append(("SCREWDYN_LEVELS", "1"))
        for level, features in LEVELS.items():
            lines = f'#pragma GCC target("{features}")', f"#define screwdyn_kernels screwdyn_kernels_{level}"
            Path(folder, f"kernels_{level}.c").write_text("\n".join([*lines, '#include "kernels.c"', ""]))
            files.append(folder / f"kernels_{level}.c")
    extension = Extension(
        "_compiled",
        [str(file) for file in files],
        include_dirs=[str(source), str(folder), np.get_include()],
        extra_compile_args=flags,
        define_macros=macros,
        py_limited_api=not FREE_THREADED,
    )
    build = Build(Distribution({"name": "screwdyn", "ext_modules": [extension]}))
    build.build_lib, build.build_temp = str(folder / "lib"), str(folder / "temp")
    build.ensure_finalized()
    build.run()
    (binary,) = Path(build.build_lib).iterdir()
    return binary
