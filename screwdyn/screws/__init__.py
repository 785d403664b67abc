"""Poses, rotations, twists, wrenches and screws."""
