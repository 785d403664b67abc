"""Plots of a run (needs the extra ``plot``)."""
