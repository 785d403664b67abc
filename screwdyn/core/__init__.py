"""Errors, array types, numbers that may be SymPy expressions, and output arrays."""
