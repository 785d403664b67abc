"""Figures of runs, arms and models (extra ``plot``), films of runs and pages for browsers (extra ``view``)."""
