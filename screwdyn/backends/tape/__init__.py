"""Scalar arithmetic recorded on a tape: traced, folded, differentiated and counted."""
