"""What the founding papers compute, as they compute it: formulations, their counts, and the choice of an arm.

Nothing else in the library uses it; it uses the library for what the papers take as given.
"""
