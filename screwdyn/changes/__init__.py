"""Changes of a moving tree: one law, and one file for each kind of change (docs/mathematics.md §6)."""
