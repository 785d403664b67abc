"""Machine code: its text for LLVM, its compilation for this processor, its files, and how Python calls it."""
