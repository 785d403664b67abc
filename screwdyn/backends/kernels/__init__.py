"""The default back-end: compiled kernels, each of which serves any tree."""
