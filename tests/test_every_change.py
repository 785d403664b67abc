"""All changes, copies, pickles and steps in any order, against a model of names and a tree built from scratch."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from cases import close
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kinds import EVERY

import screwdyn as sd
from screwdyn import padded_sum
from screwdyn.testing import random_inertia, random_pose, random_tree

SEEDS = st.integers(0, 2**32 - 1)
BODY = sd.Inertia.sphere(1.0, 0.1)
LARGEST = 14  # links
LOOPS = (None, sd.revolute((1, 2, 3), (0.1, 0, 0)), sd.prismatic("x"), sd.helical("y", 0.1), sd.cylindrical("z"))
LOOPS += (sd.spherical((0, 0.1, 0)), sd.planar((0, 1, 1)))


def random_joint(rng, name):
    joint = replace(random_tree(rng, 1, EVERY, frames=0).joint("joint1"), name=name)
    return replace(joint, armature=0.3) if joint.nv and joint.chart is None and rng.random() < 0.3 else joint


def bits(tree):
    """All that a tree says: names, and the bits of M, C, g and of every link's contribution in one state."""
    rng = np.random.default_rng(7)
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv))
    qd = rng.uniform(-1, 1, tree.nv)
    shares = tree.contributions(q, qd)
    M, C, g = tree.dynamics(q, qd)
    scale = max(1.0, float(np.abs(M).max(initial=0)))
    if shares:
        close(padded_sum(one.M for one in shares).matrix(tree.coordinates), M, scale, 1e-12)
    parts = [x for one in shares for x in (one.J, one.J_dot, *map(np.asarray, (one.M, one.C, one.g)))]
    return (
        tree.links,
        tree.joints,
        tree.locked,
        tree.coordinates,
        tree.positions,
        [x.tobytes() for x in (M, C, g, *parts)],
    )


def looks(link):
    """The shapes that links named l1, l2, … are given; others have none."""
    return (sd.Shape.sphere(int(link[1:])),) if link[0] == "l" else ()


def rebuilt(tree):
    """The same tree link by link."""
    new = sd.KinematicTree(tree.link(tree.base), tree.gravity)
    for link in tree.links[1:]:
        at = tree.topology.attachments[link]
        new.topology = new.topology.attach([at.copied(at.parent)])
        new.mass_matrix(new.neutral())
    return new


# What must be refused; a tree, a state of it, one of its links and a stale handle are given.
def grasp(tree, state, link, body=BODY, **given):
    return tree.grasp(state, body, **{"to": link, "twist": "at_rest", "name": "new"} | given)


REFUSED = {
    "attach to an unknown link": lambda t, s, link, h: t.attach(BODY, to="nowhere"),
    "attach under a taken name": lambda t, s, link, h: t.attach(BODY, to=link, name=link),
    "attach by no joint": lambda t, s, link, h: t.attach(BODY, to=link, joint="revolute"),
    "attach by the name of a joint": lambda t, s, link, h: t.attach(BODY, to=link, joint=sd.fixed("pin"), name="pin"),
    "attach at no pose": lambda t, s, link, h: t.attach(BODY, to=link, at=np.zeros((4, 4))),
    "attach nowhere": lambda t, s, link, h: t.attach(BODY, to=link, at=(np.nan, 0, 0)),
    "attach no body": lambda t, s, link, h: t.attach(3, to=link),
    "attach itself": lambda t, s, link, h: t.attach(t, to=link),
    "detach the base": lambda t, s, link, h: t.detach("base"),
    "detach an unknown link": lambda t, s, link, h: t.detach("nowhere"),
    "detach by a stale handle": lambda t, s, link, h: t.detach(h),
    "move onto itself": lambda t, s, link, h: t.move("pin", to="pin"),
    "move onto itself in motion": lambda t, s, link, h: t.move("pin", to="pin", state=s),
    "move the base": lambda t, s, link, h: t.move("base", to=link, state=s),
    "move by a stale handle": lambda t, s, link, h: t.move(h, to=link),
    "move out of reach": lambda t, s, link, h: t.move("pin", to="base", at=(99, 0, 0), state=s),
    "lock an unknown joint": lambda t, s, link, h: t.lock("nowhere"),
    "lock a fixed joint": lambda t, s, link, h: t.lock("post", s),
    "lock at no number": lambda t, s, link, h: t.lock("pin", at="here"),
    "lock at two numbers": lambda t, s, link, h: t.lock("pin", at=[1, 2]),
    "unlock what is not locked": lambda t, s, link, h: t.unlock("pin"),
    "unlock what is not locked in motion": lambda t, s, link, h: t.unlock("pin", s),
    "replace the joint of the base": lambda t, s, link, h: t.replace_joint("base", sd.revolute()),
    "replace by no joint": lambda t, s, link, h: t.replace_joint("pin", 3, s),
    "replace by a joint of a taken name": lambda t, s, link, h: t.replace_joint("pin", sd.revolute(name="post"), s),
    "set no inertia": lambda t, s, link, h: t.set_inertia("pin", 3),
    "set no inertia in motion": lambda t, s, link, h: t.set_inertia("pin", 3, s),
    "set an inertia nowhere": lambda t, s, link, h: t.set_inertia("nowhere", BODY, s),
    "no gravity": lambda t, s, link, h: setattr(t, "gravity", (1, 2)),
    "grasp without a twist": lambda t, s, link, h: grasp(t, s, link, twist=None),
    "grasp under a taken name": lambda t, s, link, h: grasp(t, s, link, name="pin"),
    "grasp a point on a pin": lambda t, s, link, h: grasp(t, s, link, sd.Inertia.point(1), joint=sd.revolute()),
    "grasp nothing on a slide": lambda t, s, link, h: grasp(t, s, link, sd.Link("x"), joint=sd.prismatic()),
    "grasp in another state": lambda t, s, link, h: grasp(t, sd.State(sd.robots.ur5()), link),
    "grasp in no state": lambda t, s, link, h: grasp(t, [0.0], link),
    "grasp twice": lambda t, s, link, h: grasp(t, s, link, h),
    "grasp with half a twist": lambda t, s, link, h: grasp(t, s, link, twist=[0, 0, 0]),
    "release the base": lambda t, s, link, h: t.release(s, "base"),
    "release by a stale handle": lambda t, s, link, h: t.release(s, h, into_world=True),
    "release in another state": lambda t, s, link, h: t.release(sd.State(sd.robots.ur5()), "pin"),
}


class EveryChange(RuleBasedStateMachine):
    """``model`` has for each link its parent, the name of its joint, the joint, and whether that is locked."""

    @initialize(seed=SEEDS)
    def start(self, seed):
        rng = np.random.default_rng(seed)
        self.tree, self.model, self.count = sd.KinematicTree(), {}, 0
        self.handles, self.stale, self.kept = {}, [], []
        # Two links that no rule touches, and a handle that is stale from the beginning.
        self.tree.attach(sd.Link("post", BODY), to="base", joint=sd.fixed(), at=random_pose(rng))
        self.tree.attach(sd.Link("pin", BODY), to="post", joint=sd.revolute((1, 2, 3), (0.1, 0.2, 0)))
        self.model = {
            "post": ("base", "post", sd.fixed(), False),
            "pin": ("post", "pin", self.tree.joint("pin"), False),
        }
        handle = self.tree.attach(BODY, to="pin", name="gone")
        self.tree.detach(handle)
        self.stale.append(handle)
        self.state = sd.State(self.tree)
        self.attach(seed)

    # Inside

    def some(self, rng, links):
        links = [link for link in links if link not in ("post", "pin")]
        return links[int(rng.integers(len(links)))] if links else None

    def any(self, rng):
        return ("base", *self.model)[int(rng.integers(len(self.model) + 1))]

    def subtree(self, root):
        beyond = [root]
        for link, (parent, *_) in self.model.items():
            if parent in beyond:
                beyond.append(link)
        return beyond

    def new(self, link, parent, joint, rng):
        """A new link at the end of the order."""
        self.model[link] = (parent, joint.name or link, joint, False)

    def remove(self, root, returns=False):
        removed = {link: self.model.pop(link) for link in self.subtree(root)}
        if not returns:
            for link in removed:
                if link in self.handles:
                    self.stale.append(self.handles.pop(link))
        return removed

    def at_rest(self):
        """After a change without a state: kept by name, new and replaced joints neutral."""
        neutral = {}
        for link in self.model:
            _, name, joint, locked = self.model[link]
            if not locked and joint is not self.moved.get(link):
                neutral |= dict(zip(joint.position_names(name), joint.neutral, strict=True))
        self.state = self.state.onto(self.tree, neutral)[0]

    def happened(self, change):
        """The event of a change in motion, which the energy confirms; None if it is refused and changes nothing."""
        tree, state = self.tree, self.state
        energy, before, topology = tree.kinetic_energy(state.q, state.qd), bits(tree), tree.topology
        try:
            event = change()
        except (sd.SingularAttachmentError, sd.InertiaError):
            assert tree.topology is topology
            assert bits(tree) == before
            return None
        after = tree.kinetic_energy(event.state.q, event.state.qd)
        expected = energy + event.kinetic_energy_brought - event.energy_lost
        close(after, expected, max(energy, after, abs(event.kinetic_energy_brought)), 1e-8)
        assert event.energy_lost >= 0
        self.state = event.state
        return event

    @property
    def moved(self):
        """The joints of the state, by link."""
        before = self.state.topology
        return {link: at.joint for link, at in before.attachments.items()}

    # Changes

    @precondition(lambda self: len(self.model) < LARGEST)
    @rule(seed=SEEDS)
    def attach(self, seed):
        rng = np.random.default_rng(seed)
        self.count += 1
        link, to = f"l{self.count}", self.any(rng)
        joint = random_joint(rng, f"j{self.count}" if seed % 2 else None)
        body = [random_inertia(rng), sd.Link(link), sd.Inertia.point(0.5)][seed % 3]
        self.handles[link] = self.tree.attach(body, to, joint, random_pose(rng), link, shape=looks(link))
        self.new(link, to, joint, rng)
        self.at_rest()

    @precondition(lambda self: len(self.model) < LARGEST - 3)
    @rule(seed=SEEDS)
    def attach_a_module(self, seed):
        rng = np.random.default_rng(seed)
        self.count += 1
        module, to, prefix = random_tree(rng, 2, EVERY, frames=0), self.any(rng), f"m{self.count}/"
        module.attach(BODY, to="base", name="lamp", joint=sd.prismatic("x"))
        joint = random_joint(rng, "wrist")
        self.handles[f"{prefix}base"] = self.tree.attach(module, to, joint, random_pose(rng), prefix=prefix)
        self.new(f"{prefix}base", to, replace(joint, name=f"{prefix}wrist"), rng)
        for link in module.links[1:]:
            joint = module.topology.attachments[link].joint.prefixed(prefix)
            self.new(prefix + link, prefix + module.parent(link), joint, rng)
        self.at_rest()

    @rule(seed=SEEDS, again=st.booleans())
    def detach(self, seed, again):
        rng = np.random.default_rng(seed)
        link = self.some(rng, self.model)
        if link is None:
            return
        what = self.handles.get(link, link)
        removed = self.remove(link)
        part = self.tree.detach(what)
        assert part.links == tuple(removed)
        self.at_rest()
        if again:  # the detached tree is attached elsewhere
            to = self.any(rng)
            joint = random_joint(rng, f"again {link}" if seed % 2 else None)
            self.handles[link] = self.tree.attach(part, to, joint, random_pose(rng))
            self.model |= {link: (to, joint.name or link, joint, False)} | {
                name: entry for name, entry in removed.items() if name != link
            }
            self.at_rest()

    @rule(seed=SEEDS, moving=st.booleans())
    def move(self, seed, moving):
        rng = np.random.default_rng(seed)
        link = self.some(rng, self.model)
        if link is None:
            return
        beyond = self.subtree(link)
        others = [name for name in ("base", *self.model) if name not in beyond]
        to, joint = others[int(rng.integers(len(others)))], random_joint(rng, None)
        if not moving:
            self.tree.move(link, to, joint, random_pose(rng))
        elif self.happened(lambda: self.tree.move(link, to, joint, state=self.state)) is None:
            return
        self.moved_to(link, to, joint)
        if not moving:
            self.at_rest()

    def moved_to(self, link, to, joint):
        """The link and all beyond it come last; handles stay valid."""
        removed = self.remove(link, returns=True)
        self.model |= removed | {link: (to, joint.name or link, joint, False)}

    @rule(seed=SEEDS, moving=st.booleans())
    def lock(self, seed, moving):
        rng = np.random.default_rng(seed)
        link = self.some(rng, [link for link, (_, _, joint, locked) in self.model.items() if joint.nv and not locked])
        if link is None:
            return
        parent, name, joint, _ = self.model[link]
        if not moving:
            self.tree.lock(name)
        elif self.happened(lambda: self.tree.lock(name, self.state)) is None:
            return
        self.model[link] = parent, name, joint, True
        if not moving:
            self.at_rest()

    @rule(seed=SEEDS, moving=st.booleans())
    def unlock(self, seed, moving):
        link = self.some(np.random.default_rng(seed), [link for link, entry in self.model.items() if entry[3]])
        if link is None:
            return
        parent, name, joint, _ = self.model[link]
        if not moving:
            self.tree.unlock(name)
        elif self.happened(lambda: self.tree.unlock(name, self.state)) is None:
            return
        self.model[link] = parent, name, joint, False
        if not moving:
            self.state = self.state.onto(self.tree)[0]

    @rule(seed=SEEDS, moving=st.booleans())
    def replace_joint(self, seed, moving):
        rng = np.random.default_rng(seed)
        link = self.some(rng, self.model)
        if link is None:
            return
        parent, name, _, _ = self.model[link]
        joint = random_joint(rng, None)
        if not moving:
            self.tree.replace_joint(link, joint)
        elif self.happened(lambda: self.tree.replace_joint(link, joint, self.state)) is None:
            return
        self.model[link] = parent, name, joint, False
        if not moving:
            self.at_rest()

    @rule(seed=SEEDS, moving=st.booleans())
    def set_inertia(self, seed, moving):
        rng = np.random.default_rng(seed)
        link, inertia = self.some(rng, self.model), [random_inertia(rng), None][seed % 5 == 0]
        if link is None:
            return
        if moving:
            self.happened(lambda: self.tree.set_inertia(link, inertia, self.state))
        else:
            self.tree.set_inertia(link, inertia)
            self.state = self.state.onto(self.tree)[0]

    @precondition(lambda self: len(self.model) < LARGEST)
    @rule(seed=SEEDS)
    def grasp(self, seed):
        rng = np.random.default_rng(seed)
        self.count += 1
        link, to = f"l{self.count}", self.any(rng)
        joint = random_joint(rng, None)
        event = self.happened(
            lambda: self.tree.grasp(
                self.state,
                random_inertia(rng),
                to=to,
                twist=rng.uniform(-1, 1, 6),
                joint=joint,
                name=link,
                shape=looks(link),
            )
        )
        if event is not None:
            self.handles[link] = event.handle
            self.new(link, to, joint, rng)

    @rule(seed=SEEDS, into_world=st.booleans())
    def release(self, seed, into_world):
        link = self.some(np.random.default_rng(seed), self.model)
        if link is None:
            return
        what = self.handles.get(link, link)
        if self.happened(lambda: self.tree.release(self.state, what, into_world=into_world)) is None:
            return
        if into_world:
            self.moved_to(link, "base", sd.free())
        else:
            self.remove(link)

    @rule(seed=SEEDS)
    def throw_and_grasp(self, seed):
        """A link is released and grasped again as it flies, with all links beyond it."""
        rng = np.random.default_rng(seed)
        link = self.some(rng, self.model)
        if link is None:
            return
        event = self.happened(lambda: self.tree.release(self.state, self.handles.get(link, link)))
        removed = self.remove(link)
        to, joint = self.any(rng), random_joint(rng, None)
        grasped = self.happened(lambda: self.tree.grasp(self.state, event.released, to=to, joint=joint))
        if grasped is not None:
            self.handles[link] = grasped.handle
            self.model |= removed | {link: (to, link, joint, False)}

    @rule(seed=SEEDS)
    def close_and_open(self, seed):
        """A loop is closed in motion, stays closed while a payload comes and goes, and is opened again."""
        rng = np.random.default_rng(seed)
        link, to = rng.permutation(["base", *self.model])[:2].tolist()
        event = self.happened(
            lambda: self.tree.close(link, to, LOOPS[seed % len(LOOPS)], name="loop", state=self.state)
        )
        if event is None:
            return
        twist, at = rng.uniform(-1, 1, 6), random_pose(rng)
        self.happened(lambda: self.tree.grasp(self.state, BODY, to=self.any(rng), at=at, twist=twist, name="load"))
        if "load" in self.tree.links:
            q, qd, J = self.state.q, self.state.qd, self.tree.constraint_jacobian(self.state.q)
            close(self.tree.gap(q), np.zeros(len(J)), 1.0, 1e-9)
            close(J @ qd, np.zeros(len(J)), 1.0 + float((np.abs(J) @ np.abs(qd)).max(initial=0)), 1e-9)
            assert self.happened(lambda: self.tree.release(self.state, "load")) is not None
        assert self.happened(lambda: self.tree.open(event.handle, self.state)).energy_lost == 0

    @rule(seed=SEEDS)
    def set_gravity(self, seed):
        self.tree.gravity = np.random.default_rng(seed).normal(size=3)
        self.state = self.state.onto(self.tree)[0]

    @rule(seed=SEEDS)
    def step(self, seed):
        rates = np.random.default_rng(seed).uniform(-1, 1, self.tree.nv)
        self.state = sd.State(self.tree, self.tree.integrate(self.state.q, 0.1 * rates), rates)

    # What must not change anything

    @rule(which=st.sampled_from(sorted(REFUSED)), seed=SEEDS)
    def refuse(self, which, seed):
        tree, before, entries = self.tree, bits(self.tree), self.state.to_dict()
        topology, model = tree.topology, tree.model
        with pytest.raises(sd.ScrewdynError):
            REFUSED[which](tree, self.state, self.any(np.random.default_rng(seed)), self.stale[seed % len(self.stale)])
        assert tree.topology is topology
        assert tree.model is model
        assert bits(tree) == before
        assert self.state.to_dict() == entries

    @precondition(lambda self: len(self.kept) < 4)
    @rule(go_on=st.booleans())
    def copy(self, go_on):
        twin = self.tree.copy()
        self.tree, twin = (twin, self.tree) if go_on else (self.tree, twin)
        self.kept.append((twin, bits(twin)))
        self.state = sd.State(self.tree, self.state.q, self.state.qd)

    @rule()
    def pickle(self):
        before = bits(self.tree)
        self.state, self.handles, self.stale = pickle.loads(pickle.dumps((self.state, self.handles, self.stale)))
        self.tree = self.state.tree
        assert bits(self.tree) == before

    @rule()
    def write_and_read(self):
        """Handles are not written."""
        before = bits(self.tree)
        self.tree = sd.KinematicTree.from_json(self.tree.to_json())
        assert bits(self.tree) == before
        self.stale += self.handles.values()
        self.handles = {}
        self.state = sd.State(self.tree, self.state.q, self.state.qd)

    # What always holds

    @invariant()
    def names_are_those_of_the_model(self):
        moving = [(name, joint) for _, name, joint, locked in self.model.values() if not locked]
        assert self.tree.links == ("base", *self.model)
        assert self.tree.joints == tuple(name for _, name, _, _ in self.model.values())
        assert self.tree.locked == tuple(name for _, name, _, locked in self.model.values() if locked)
        assert self.tree.coordinates == tuple(x for name, joint in moving for x in joint.freedom_names(name))
        assert self.tree.positions == tuple(x for name, joint in moving for x in joint.position_names(name))
        assert [self.tree.parent(link) for link in self.model] == [entry[0] for entry in self.model.values()]
        assert [self.tree.shapes(link) for link in self.model] == [looks(link) for link in self.model]
        assert (self.state.coordinates, self.state.positions) == (self.tree.coordinates, self.tree.positions)

    @invariant()
    def numbers_are_those_of_a_tree_built_from_scratch(self):
        assert bits(rebuilt(self.tree)) == bits(self.tree)

    @invariant()
    def handles_are_valid_as_long_as_their_links_are_attached(self):
        for link, handle in self.handles.items():
            assert self.tree.resolve(handle) == link
        for handle in self.stale:
            with pytest.raises(sd.StaleHandleError):
                self.tree.resolve(handle)

    @invariant()
    def copies_stay_as_they_were(self):
        for twin, before in self.kept:
            assert bits(twin) == before


EveryChange.TestCase.settings = settings(stateful_step_count=12)
TestEveryChange = EveryChange.TestCase
