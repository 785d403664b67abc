"""The parts of a run that a film shows: its motions, payloads before their grasp, and the flight of released ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from numbers import Real
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import free
from screwdyn.physics.state import State
from screwdyn.simulation.events import Grasp, Happened
from screwdyn.simulation.hybrid import HybridSimulation, Motion
from screwdyn.simulation.impact import brings_its_motion
from screwdyn.simulation.integrators import Integrator
from screwdyn.simulation.outcomes import Change, FreeBody, GraspEvent, LoopEvent, ReleaseEvent
from screwdyn.views.scene import Mark, Scene, Stage, at_rest, stage_scene
from screwdyn.views.solids import joint_point

__all__ = ["run_scene"]


Outcome = TypeVar("Outcome", bound=Change)

# Of a film; more are an error in fps, and would fill the memory.
_MOST_FRAMES = 100_000
_INTEGRATOR = Integrator("DOP853", rtol=1e-9, atol=1e-10)


def positive_rate(fps: object) -> float:
    """Frames per second as a float; ScrewdynError unless they are a number > 0."""
    rate = float(fps) if isinstance(fps, Real) else np.nan
    if not (np.isfinite(rate) and rate > 0):
        raise ScrewdynError(f"fps must be a number of frames per second > 0; got {fps!r}")
    return rate


def frame_times(motions: Sequence[Motion], rate: float) -> Array:
    """The times of the frames of a film, (frames,), s; ScrewdynError if there are too many."""
    begin, end = motions[0].t[0], motions[-1].t[-1]
    frames = int((end - begin) * rate + 1e-9) + 1
    if frames > _MOST_FRAMES:
        raise ScrewdynError(
            f"{end - begin:.4g} s with {rate:.4g} frames per second are {frames} frames, and a film has at most "
            f"{_MOST_FRAMES}; choose a smaller fps"
        )
    times: Array = begin + np.arange(frames) / rate
    return np.asarray(np.minimum(times, end))


def run_scene(
    motions: Sequence[Motion],
    events: Sequence[Happened],
    rate: float,
    show: Sequence[str] = (),
    wrenches: Sequence[str] = (),
) -> Scene:
    """The scene of a run in frames per second; other parameters and errors as for :func:`stage_scene`."""
    parts, marks = stages(motions, events)
    return stage_scene(parts, frame_times(motions, rate), marks, show, wrenches)


def stages(motions: Sequence[Motion], events: Sequence[Happened]) -> tuple[list[Stage], list[Mark]]:
    """The stages of a run, those of the robot first, and what happens."""
    names = _names(motions, events)
    payloads = frozenset(link for _, event in _events(events, GraspEvent) for link in event.payload.tree.links)
    robot = []
    for motion in motions:
        tree, begin = motion.solution.layout.tree, float(motion.t[0])
        before = [k for k, happened in enumerate(events) if happened.t <= begin]
        known, adrift = names[before[-1] + 1 if before else 0], _adrift(events, begin)
        robot.append(Stage(tree, begin, motion.t[-1], motion.values, tree.links, known, payloads, adrift))
    marks = [_mark(happened, known, motions) for happened, known in zip(events, names[1:], strict=True)]
    return [*robot, *_waiting(motions[0].t[0], events, names), *_flying(motions[-1].t[-1], events, names)], marks


def _mark(happened: Happened, names: Mapping[str, str], motions: Sequence[Motion]) -> Mark:
    """The mark of an event at the origin of its link, or at the joint of its loop."""
    event, point = happened.event, np.zeros(3)
    if isinstance(event, LoopEvent):
        # The last tree that had an opened loop; one that was opened at the start of the run is in none.
        trees = [event.state.tree, *(m.solution.layout.tree for m in reversed(motions) if m.t[0] < happened.t)]
        found = (tree.topology.loops[event.loop] for tree in trees if event.loop in tree.topology.loops)
        point = next((joint_point(loop.joint) for loop in found), point)
    body, text = names.get(event.link, event.link), f"{happened.verb} {happened.subject}"
    return Mark(happened.t, body, text, event.energy_lost, point)


def _names(motions: Sequence[Motion], events: Sequence[Happened]) -> list[dict[str, str]]:
    """Before the first event and after each one, the names of the bodies of links that differ from those of the links.

    A second body with the name of an earlier one, ``"crate"``, is called ``"crate (2)"``.
    """
    bodies = Counter(motions[0].solution.layout.tree.links)
    names: list[dict[str, str]] = [{}]
    for happened in events:
        known = names[-1].copy()
        if isinstance(happened.event, GraspEvent) and not _again(happened):
            for link in happened.event.payload.tree.links:
                bodies[link] += 1
                if bodies[link] > 1:
                    known[link] = f"{link} ({bodies[link]})"
        names.append(known)
    return names


def _again(happened: Happened) -> bool:
    """Whether a grasp is of a body that has been there before: a released one, or a link of the tree."""
    return isinstance(happened.what, Grasp) and brings_its_motion(happened.what.body)


def _events(events: Sequence[Happened], kind: type[Outcome]) -> Iterator[tuple[int, Outcome]]:
    """The events of a kind with their indices."""
    for k, happened in enumerate(events):
        if isinstance(happened.event, kind):
            yield k, happened.event


def _adrift(events: Sequence[Happened], t: float) -> frozenset[str]:
    """Links that have been released before a time, and not grasped since."""
    found: frozenset[str] = frozenset()
    for happened in events:
        if happened.t <= t:
            if isinstance(happened.event, ReleaseEvent) and happened.event.loop is None:
                found |= frozenset(happened.event.released.tree.links)
            elif isinstance(happened.event, GraspEvent):
                found -= frozenset(happened.event.payload.tree.links)
    return found


def _waiting(start: float, events: Sequence[Happened], names: Sequence[Mapping[str, str]]) -> Iterator[Stage]:
    """Payloads at rest before their grasp, from the start of the run on, unless they have been there before."""
    for k, event in _events(events, GraspEvent):
        body, grasped = event.payload, events[k]
        if not _again(grasped) and not body.twist.any() and not body.state.qd.any():
            tree, values = body.tree, at_rest(body.tree, body.state.q)
            yield Stage(tree, start, grasped.t, values, tree.links, names[k + 1], origin=body.pose, waiting=True)


def _flying(end: float, events: Sequence[Happened], names: Sequence[Mapping[str, str]]) -> Iterator[Stage]:
    """Released payloads that have left the tree, until the end or until they are grasped again."""
    for k, event in _events(events, ReleaseEvent):
        begin, link = events[k].t, event.link
        if link not in event.state.tree.links:
            later = (h for h in events[k + 1 :] if h.link == link and _again(h))
            until = next((h.t for h in later), end)
            if until > begin:
                with suppress(SingularAttachmentError):  # a massless frame has no flight
                    yield from flight(event.released, begin, until, names[k + 1])


def flight(body: FreeBody, begin: float, end: float, names: Mapping[str, str] = MappingProxyType({})) -> list[Stage]:
    """The free flight of a payload in the base frame of the robot that released it, without torques in its joints.

    Raises
    ------
    SingularAttachmentError
        If it has no inertia, such as a massless frame.
    """
    root, links = body.tree.base, body.tree.links
    base = next(name for name in chain(["world"], (f"world{k}" for k in count(2))) if name not in links)
    world = type(body.tree)(base, body.pose[:3, :3] @ body.tree.gravity)
    joint = free(passive=True, name=f"flight of {root}")
    world.attach(body.tree, base, joint, body.pose)
    inner, flying = body.state.to_dict(), joint.freedom_names(f"flight of {root}")
    start = State(world, inner["q"], inner["qd"] | dict(zip(flying, body.twist.tolist(), strict=True)))
    motions, _, _ = HybridSimulation(world, begin, end, (end - begin) / 1000, _INTEGRATOR).run(start)
    drawn = frozenset(links)
    return [Stage(world, m.t[0], m.t[-1], m.values, links, names, drawn, drawn) for m in motions]
