"""The one source of physics: what a single link does, and the walks over a tree that ask it.

``vectors`` and ``steps`` are plain functions of scalars; ``sweeps`` walk the rows of a model and call them;
``looped`` compiles the walks. Nothing here checks its input: that happens at the edge, in ``dynamics``.
"""
