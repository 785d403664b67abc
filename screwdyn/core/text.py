"""Texts that interpreters show as they are printed."""

import html

__all__ = ["Text"]


class Text(str):
    """A text of several lines, whose representation is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<pre>{html.escape(self)}</pre>"
