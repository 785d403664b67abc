"""The command ``screwdyn``: demo, simulate, compare, convert, view, info, explain, check."""

from screwdyn.cli.main import main

__all__ = ["main"]
