"""The system's C compiler, for tests of what is exported."""

import ctypes
import os
import shutil
import subprocess

FLAGS = (
    "-std=c99 -pedantic -Wall -Wextra -Werror -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes"
    " -O0 -ffp-contract=off -fPIC -shared"
)


def load(text, folder):
    """Compile C text in a folder, without a warning, and load it."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler, "this test compiles what it tests: install a C compiler, as cc or named by CC"
    source = folder / f"{len(list(folder.iterdir()))}.c"
    source.write_text(text, encoding="ascii")
    library = source.with_suffix(".so")
    command = [compiler, *FLAGS.split(), str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return ctypes.CDLL(str(library))


def pointer(a):
    """An array of doubles as C takes it."""
    return a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
