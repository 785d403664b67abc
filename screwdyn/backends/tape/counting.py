"""A tape for counts of operations that do not depend on rounding."""

from bisect import bisect_left

from screwdyn.backends.tape.tape import Recorded, Scalar, Tape

__all__ = ["CountingTape"]

# Numbers below the first, in SI units, are rounding of zero; numbers that differ by less than the second are equal.
_ZERO, _RELATIVE = 1e-13, 1e-11


class CountingTape(Tape):
    """A tape on which numbers that differ by rounding are one number, so that the count is that of exact arithmetic.

    Otherwise the 1e-16 that remains of a − a, and two values of one product of constants, would take operations,
    for some values of the constants only. Results have the relative error 1e-11: for counts, not for code.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known = [0.0, 1.0]  # absolute values, in order

    def _read(self, x: Scalar) -> Scalar:
        """As in `Tape`; of numbers, the first that differed from it by rounding."""
        x = super()._read(x)
        if isinstance(x, Recorded):
            return x
        size = abs(x)
        at = bisect_left(self._known, size)
        for known in self._known[at - 1 : at + 1] if at else self._known[:1]:
            if abs(size - known) <= (_RELATIVE * known or _ZERO):
                return known if x > 0 else -known
        self._known.insert(at, size)
        return x
