"""The command ``screwdyn``: demo, simulate, compare, convert, info, check."""

from screwdyn.cli.main import main

__all__ = ["main"]
