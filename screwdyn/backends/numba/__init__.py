"""The default back-end: compiled kernels that serve any tree."""
