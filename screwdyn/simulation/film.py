"""The parts of a run that a film shows: its motions, payloads before their grasp, and the flight of released ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count

import numpy as np

from screwdyn.changes.change import Happened
from screwdyn.changes.grasp import FreeBody, Grasp, GraspEvent, brings_its_motion
from screwdyn.changes.release import ReleaseEvent
from screwdyn.core import Array, ScrewdynError, SingularAttachmentError
from screwdyn.mechanism.joint import free
from screwdyn.physics.state import State
from screwdyn.simulation.hybrid import HybridSimulation, TreeMotion
from screwdyn.simulation.integrators import Integrator
from screwdyn.views.scene import Mark, Scene, Stage, View, at_rest, joint_point, stage_scene

# Of a film; more are an error in fps, and would fill the memory.
_MOST_FRAMES = 100_000
_INTEGRATOR = Integrator("DOP853", rtol=1e-9, atol=1e-10)


def run_scene(
    motions: Sequence[TreeMotion], events: Sequence[Happened], rate: float, view: View | None = None
) -> Scene:
    """The scene of a run in frames per second, which may be too many; all else as for :func:`stage_scene`."""
    begin, end = motions[0].t[0], motions[-1].t[-1]
    frames = int((end - begin) * rate + 1e-9) + 1
    if frames > _MOST_FRAMES:
        raise ScrewdynError(
            f"{end - begin:.4g} s with {rate:.4g} frames per second are {frames} frames, and a film has at most "
            f"{_MOST_FRAMES}; choose a smaller fps"
        )
    return scene_at(motions, events, np.minimum(begin + np.arange(frames) / rate, end), view)


def scene_at(
    motions: Sequence[TreeMotion], events: Sequence[Happened], times: Array, view: View | None = None
) -> Scene:
    """The scene of a run at rising times (frames,), s; all else as for :func:`stage_scene`."""
    parts, marks = _stages(motions, events)
    return stage_scene(parts, times, marks, view)


def _stages(motions: Sequence[TreeMotion], events: Sequence[Happened]) -> tuple[list[Stage], list[Mark]]:
    """The stages of a run, those of the robot first, and what happens; a second ``"crate"`` is ``"crate (2)"`` here."""
    start, end = motions[0].t[0], motions[-1].t[-1]
    bodies, names, adrift = Counter(motions[0].tree.links), dict[str, str](), frozenset[str]()
    payloads, waiting, flying, marks = set[str](), list[Stage](), list[Stage](), list[Mark]()
    # Before the first event and after each one: names, and links that were released and not grasped since.
    known = [(names, adrift)]
    for k, happened in enumerate(events):
        event = happened.event
        if isinstance(event, GraspEvent):
            body, links = event.payload, event.payload.tree.links
            payloads.update(links)
            adrift -= frozenset(links)
            if not _again(happened):
                bodies.update(links)
                names = names | {link: f"{link} ({bodies[link]})" for link in links if bodies[link] > 1}
                if not body.twist.any() and not body.state.qd.any():
                    values = at_rest(body.tree, body.state.q)
                    still = Stage(body.tree, start, happened.t, values, links, names, origin=body.pose, waiting=True)
                    waiting.append(still)
        elif isinstance(event, ReleaseEvent):
            if event.loop is None:
                adrift |= frozenset(event.released.tree.links)
            later = (h.t for h in events[k + 1 :] if h.link == event.link and _again(h))
            until = next(later, end)
            if event.link not in event.state.tree.links and until > happened.t:
                with suppress(SingularAttachmentError):  # a massless frame has no flight
                    flying += _flight(event.released, happened.t, until, names)
        known.append((names, adrift))
        marks.append(_mark(happened, names, motions))
    robot = []
    for motion in motions:
        tree, begin = motion.tree, float(motion.t[0])
        names, adrift = known[max((k + 1 for k, happened in enumerate(events) if happened.t <= begin), default=0)]
        drawn = tree.links, names, frozenset(payloads), adrift
        robot.append(Stage(tree, begin, motion.t[-1], motion.values, *drawn, contacts=motion.contacts))
    return [*robot, *waiting, *flying], marks


def _mark(happened: Happened, names: Mapping[str, str], motions: Sequence[TreeMotion]) -> Mark:
    """The mark of an event at the origin of its link, or at the joint of its loop."""
    event, point = happened.event, np.zeros(3)
    if event.concerns == "loop":
        # The last tree that had an opened loop; one that was opened at the start of the run is in none.
        trees = [event.state.tree, *(m.tree for m in reversed(motions) if m.t[0] < happened.t)]
        found = (tree.topology.loops[event.subject] for tree in trees if event.subject in tree.topology.loops)
        point = next((joint_point(loop.joint) for loop in found), point)
    body, text = names.get(event.link, event.link), f"{happened.verb} {happened.subject}"
    return Mark(happened.t, body, text, event.energy_lost, point)


def _again(happened: Happened) -> bool:
    """Whether a grasp is of a body that has been there before: a released one, or a link of the tree."""
    return isinstance(happened.what, Grasp) and brings_its_motion(happened.what.body)


def _flight(body: FreeBody, begin: float, end: float, names: Mapping[str, str]) -> list[Stage]:
    """The free flight of a payload, without torques in its joints, in the base frame of the robot that released it."""
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
