"""Translation of a tape to SymPy expressions."""
