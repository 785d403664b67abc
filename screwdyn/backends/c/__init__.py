"""Translation of a tape to C99 source."""
