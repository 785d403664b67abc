"""Scalar arithmetic recorded on a tape: traced, folded, differentiated, counted."""
