"""Formulas: the steps for a single link, recursions over the tree, and the catalogue of quantities.

``link_steps`` are functions of scalars; ``recursions`` call them for the rows of a ``table``;
``quantities`` is the catalogue of what the recursions compute. No module here imports a compiler or checks its input;
``forms`` checks it.
"""
