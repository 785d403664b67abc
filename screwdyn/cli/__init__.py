"""The command ``screwdyn``: demo, info, check."""

from screwdyn.cli.main import main

__all__ = ["main"]
