"""The progress of long work on a terminal."""

import sys
from collections.abc import Iterator
from typing import Any

# Time after which work shows its progress unasked, s.
LONG = 10.0


def progress_bar(steps: Iterator[Any] | None = None, *, shown: bool | None = None, **looks: Any) -> Any:
    """A bar of tqdm on stderr, around some steps or to be updated; by default on a terminal, after ten seconds."""
    from tqdm import tqdm

    # There is no stderr under pythonw.
    hidden = sys.stderr is None or not (sys.stderr.isatty() if shown is None else shown)
    return tqdm(steps, disable=hidden, delay=LONG if shown is None else 0.0, **looks)
