"""Simulation: states, impacts of grasp and release, events, integration, results."""
