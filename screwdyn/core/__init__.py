"""Errors, array types, numbers that may be SymPy expressions, and output arrays: what all packages import from here."""

from screwdyn.core.errors import *
from screwdyn.core.errors import file_errors
from screwdyn.core.types import *
