"""Formulas only: what a single link does, the walks over a tree that ask it, and the catalogue of quantities.

``spatial`` and ``link_steps`` are plain functions of scalars; ``recursions`` order them over the rows of a ``table``;
``quantities`` enters what they compute. Nothing here knows a compiler or checks its input: that happens in ``forms``.
"""
