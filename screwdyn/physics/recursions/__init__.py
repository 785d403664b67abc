"""Recursions over the rows of a table: passes outward from the base and inward from the tips, by ``link_steps``.

Every recursion takes the table of a model, one state over its rows, scratch space, and arrays for its results; a
quantity of one link also takes the link's place (``table``). A returned status other than 0 means that there is no
result: 1 + the row of a joint that feels no inertia, or a negative code.
Cost: O(n), except the matrices, O(Σ depth), and the operational inertia, O(n · depth²).
"""
