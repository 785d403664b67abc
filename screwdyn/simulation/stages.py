"""The parts of a run that a film shows: its motions, payloads before their grasp, and the flight of released ones."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import free
from screwdyn.simulation.outcomes import FreeBody, GraspEvent, ReleaseEvent
from screwdyn.simulation.state import State
from screwdyn.views.staging import Stage, at_rest

if TYPE_CHECKING:
    from screwdyn.simulation.result import Run

__all__ = ["flight", "frame_times", "positive_rate", "stages"]


def positive_rate(fps: object) -> float:
    """Frames per second as a float; ScrewdynError unless they are a number > 0."""
    rate = float(fps) if isinstance(fps, Real) else np.nan
    if not (np.isfinite(rate) and rate > 0):
        raise ScrewdynError(f"fps must be a number of frames per second > 0; got {fps!r}")
    return rate


def frame_times(run: Run, rate: float) -> Array:
    """The times of the frames of a film, (frames,), s."""
    begin, end = run.t[0], run.t[-1]
    times: Array = begin + np.arange(int((end - begin) * rate + 1e-9) + 1) / rate
    return np.asarray(np.minimum(times, end))


def stages(run: Run) -> list[Stage]:
    """The stages of a run, those of the robot first."""
    payloads = frozenset(
        link
        for happened in run.events
        if isinstance(happened.event, GraspEvent)
        for link in happened.event.payload.tree.links
    )
    robot = [
        Stage(
            tree,
            motion.t[0],
            motion.t[-1],
            motion.values,
            tree.links,
            payloads=payloads,
            adrift=_adrift(run, motion.t[0]),
        )
        for motion in run.motions
        for tree in [motion.solution.layout.tree]
    ]
    return [*robot, *_waiting(run), *_flying(run)]


def _adrift(run: Run, t: float) -> frozenset[str]:
    """Links that have been released before a time, and not grasped since."""
    found: frozenset[str] = frozenset()
    for happened in run.events:
        if happened.t <= t:
            if isinstance(happened.event, ReleaseEvent):
                found |= frozenset(happened.event.released.tree.links)
            elif isinstance(happened.event, GraspEvent):
                found -= frozenset(happened.event.payload.tree.links)
    return found


def _waiting(run: Run) -> Iterator[Stage]:
    """Payloads at rest before their grasp, from the start of the run on, unless they were in the tree before."""
    seen = set(run.motions[0].solution.layout.tree.links)
    for happened in run.events:
        if isinstance(happened.event, GraspEvent):
            body = happened.event.payload
            if body.tree.base not in seen and not body.twist.any() and not body.state.qd.any():
                values = at_rest(body.tree, body.state.q)
                yield Stage(body.tree, run.t[0], happened.t, values, body.tree.links, body.pose, waiting=True)
            seen.update(body.tree.links)


def _flying(run: Run) -> Iterator[Stage]:
    """Released payloads that have left the tree, until a link of the same name is in the tree again."""
    for k, happened in enumerate(run.events):
        event = happened.event
        if isinstance(event, ReleaseEvent) and event.link not in event.state.tree.links:
            later = (h for h in run.events[k + 1 :] if isinstance(h.event, GraspEvent) and h.link == event.link)
            end = next((h.t for h in later), run.t[-1])
            if end > happened.t:
                try:
                    yield flight(event.released, happened.t, end)
                except SingularAttachmentError:  # a massless frame has no flight
                    continue


def flight(body: FreeBody, begin: float, end: float) -> Stage:
    """The free flight of a payload in the base frame of the robot that released it, without torques in its joints.

    Raises
    ------
    SingularAttachmentError
        If it has no inertia, such as a massless frame.
    """
    from screwdyn.simulation.simulate import simulate  # imports the module of runs, which imports this one

    base = next(name for name in ("world", *(f"world{k}" for k in range(2, 99))) if name not in body.tree.links)
    world = type(body.tree)(base, body.pose[:3, :3] @ body.tree.gravity)
    root = body.tree.base
    joint = free(passive=True, name=f"flight of {root}")
    world.attach(body.tree, base, joint, body.pose)
    qd = dict(zip(joint.freedom_names(joint.name or root), body.twist.tolist(), strict=True))
    q, inner = body.state.to_dict()["q"], body.state.to_dict()["qd"]
    run = simulate(world, State(world, q, inner | qd), end - begin, t0=begin)
    (motion,) = run.motions
    links = body.tree.links
    return Stage(world, begin, end, motion.values, links, payloads=frozenset(links), adrift=frozenset(links))
