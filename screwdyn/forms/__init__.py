"""What a tree gives: numbers, machine code, derivatives, closed forms, C source, operation counts."""
