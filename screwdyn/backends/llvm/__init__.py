"""A tape as machine code for this processor."""
