"""Text in XML files."""

import re
from html import escape

__all__ = ["NOT_IN_XML", "quoted"]

NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A reader of XML replaces white space in an attribute by spaces unless it is written as a reference.
_REFERENCES = str.maketrans({c: f"&#{ord(c)};" for c in "\n\r\t"})


def quoted(text: str) -> str:
    """The value of an attribute, in quotes; ``xml.sax.saxutils.quoteattr`` would import ``urllib`` and ``ssl``."""
    return f'"{escape(text).translate(_REFERENCES)}"'
