"""A tape as C99 source."""
