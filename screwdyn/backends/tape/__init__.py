"""Scalar arithmetic recorded on a tape: tracing, folding, differentiation and operation counts."""
