"""The forms of a quantity: numeric values, machine code, derivatives, closed forms, C source, operation counts."""
