"""Inertias, joints and links, and the topology of a tree."""
