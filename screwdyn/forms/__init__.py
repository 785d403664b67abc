"""The forms of a quantity: numbers, machine code, derivatives, closed forms, C source, operation counts."""
