"""Translation of a tape to machine code for this processor."""
