"""A tape as SymPy expressions."""
