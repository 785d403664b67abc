"""Text in XML files."""

from html import escape

__all__ = ["quoted"]

# A reader of XML replaces white space in an attribute by spaces unless it is written as a reference.
_REFERENCES = str.maketrans({c: f"&#{ord(c)};" for c in "\n\r\t"})


def quoted(text: str) -> str:
    """The value of an attribute, in quotes; ``xml.sax.saxutils.quoteattr`` would import ``urllib`` and ``ssl``."""
    return f'"{escape(text).translate(_REFERENCES)}"'
