"""A context manager that an interrupt, such as Ctrl-C, cannot separate from what ends it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

__all__ = ["Lease"]

T = TypeVar("T")


class _Direct:
    """A special method that is another function for each object, such as one of C."""

    def __init__(self, of: Callable[[Any], Callable[..., Any]]) -> None:
        self.of = of

    def __get__(self, held: object, kind: type | None = None) -> Callable[..., Any]:
        return self if held is None else self.of(held)

    def __call__(self, held: object, *arguments: Any) -> Any:  # as contextlib.ExitStack does
        return self.of(held)(*arguments)


class Lease(Generic[T]):
    """What :func:`contextlib.contextmanager` makes of a generator, without a line of Python outside of the generator.

    Python reacts to signals between its instructions. Here the ``with`` statement begins and ends the generator by
    functions of C, so from its first ``yield`` on, any interrupt is one within the generator. If one comes in the
    ``with`` statement itself, outside of the block, the statement discards the lease, and Python closes the generator.

    Parameters
    ----------
    steps : generator
        It yields the target of ``as``, resumes at the end of the block, and then yields zeros without end. It does not
        receive the exceptions of the block.
    """

    def __init__(self, steps: Generator[Any]) -> None:
        self.steps = steps

    if TYPE_CHECKING:

        def __enter__(self) -> T: ...
        def __exit__(self, *error: object) -> None: ...
    else:
        __enter__ = _Direct(lambda lease: lease.steps.__next__)
        # A function of C that takes the three arguments of __exit__, resumes the generator and returns None.
        __exit__ = _Direct(lambda lease: partial(min, None, key=lease.steps.send))
