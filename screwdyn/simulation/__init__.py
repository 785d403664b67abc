"""Motion over time: states, impacts, events, results."""
