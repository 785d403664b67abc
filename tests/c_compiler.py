"""The system's C compiler, for tests of exported source."""

import ctypes
import os
import shutil
import subprocess

WARNINGS = "-pedantic -Wall -Wextra -Werror -Wshadow -Wconversion"
OPTIONS = "-O0 -ffp-contract=off -fPIC -shared"
# For each file extension: the environment variable of the compiler, the default compiler and its flags.
LANGUAGES = {
    "c": ("CC", "cc", "-std=c99 -Wmissing-prototypes -Wstrict-prototypes"),
    "cpp": ("CXX", "c++", "-std=c++11"),
}


def load(text, folder, language="c", options=""):
    """Compile C or C++ text in a folder, without a warning, and load it."""
    variable, usual, own = LANGUAGES[language]
    compiler = shutil.which(os.environ.get(variable, usual))
    assert compiler, f"this test compiles what it tests: install a compiler, as {usual} or named by {variable}"
    source = folder / f"{len(list(folder.iterdir()))}.{language}"
    source.write_text(text, encoding="ascii")
    library = source.with_suffix(".so")
    flags = f"{own} {WARNINGS} {OPTIONS} {options}".split()
    command = [compiler, *flags, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return ctypes.CDLL(str(library))


def pointer(a):
    """Pointer to an array of doubles."""
    return a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
