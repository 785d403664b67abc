"""Feedback laws, adaptation and observers for robots that pick up payloads; they compose. docs/control.md."""

from screwdyn.control.adaptive import AdaptiveControl
from screwdyn.control.laws import ComputedTorque, GravityCompensation, PassivityControl
from screwdyn.control.observers import MomentumObserver, PayloadEstimator
from screwdyn.control.regulators import LQR, TimeVaryingLQR

__all__ = [
    "LQR",
    "AdaptiveControl",
    "ComputedTorque",
    "GravityCompensation",
    "MomentumObserver",
    "PassivityControl",
    "PayloadEstimator",
    "TimeVaryingLQR",
]
