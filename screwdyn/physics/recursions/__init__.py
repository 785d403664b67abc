"""Walks over the rows of a table, out from the base and back in. They order the steps of ``link_steps``.

Every recursion takes the table of a model, one state over its rows, scratch space, and arrays for its results; a
quantity of one link also takes the link's place (``table``). A status other than 0 says that there is no result: 1 + a
row whose joint carries no inertia, or a negative number.
Cost: O(n), except the matrices, O(Σ depth), and the operational inertia, O(n · depth²).
"""
