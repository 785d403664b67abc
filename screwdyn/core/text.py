"""Names, and texts that interpreters show as they are printed."""

import html
import re
from typing import Any

__all__ = ["NAME", "Text", "is_name", "printable"]

# What a name must be, for messages.
NAME = "a non-empty string without control characters"
# Terminals, figures and files act on controls and on marks that turn the direction of text, or cannot hold surrogates.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a link or a joint."""
    return isinstance(value, str) and value != "" and _CONTROL.search(value) is None


def printable(text: str) -> str:
    """The text with control characters as Python writes them."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class Text(str):
    """A text of several lines, whose representation is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<pre>{html.escape(self)}</pre>"
