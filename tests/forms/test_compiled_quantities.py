"""Every quantity of the catalogue, compiled: the default kernel's numbers, in every layout, for every kind of joint."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import KinematicTree, ShapeError, UnknownLinkError
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.robots import two_link, ur5
from screwdyn.testing import random_inertia, random_pose


def every_joint():
    """Four branches on a free body, with a joint of every kind."""
    rng = np.random.default_rng(1)
    tree = KinematicTree()
    hangs = {
        "body": ("base", sd.free()),
        "arm": ("body", sd.revolute((1, 2, 3))),
        "ball": ("body", sd.spherical((0.1, 0.2, 0.1))),
        "slab": ("body", sd.planar("y")),
        "pin": ("slab", sd.cylindrical("x")),
        "hook": ("body", sd.universal()),
    }
    for name, (parent, joint) in hangs.items():
        tree.attach(random_inertia(rng), to=parent, joint=joint, at=random_pose(rng), name=name)
    return tree


@pytest.fixture(scope="module", params=[pytest.param(ur5, marks=pytest.mark.soak), every_joint])
def robot(request):
    return request.param()


@pytest.fixture(scope="module")
def compiled(robot):
    return robot.compile(threads=1).wait()


def last(tree):
    """The link with most joints behind it."""
    return max(tree.links, key=lambda link: len(tree.path(link)))


def arguments(tree, entry, batch, seed=0):
    """Links and states for a quantity, in the order of its signature."""
    rng = np.random.default_rng(seed)
    state = {name: rng.uniform(-2, 2, (*batch, tree.nv)) for name in ARGUMENTS[1:]}
    q = [tree.random_configuration(rng) for _ in range(int(np.prod(batch)))]
    given = {"link": last(tree), "q": np.reshape(q, (*batch, tree.nq)), **state}
    return [given[name] for name in entry.signature.parameters if name in given]


def arrays(found):
    if isinstance(found, Contribution):
        return [found.J, found.J_dot, *map(np.asarray, (found.M, found.C, found.g))]
    return list(found) if isinstance(found, tuple) else [found]


# Those of trees without loops and contacts.
ENTRIES = {name: entry for name, entry in CATALOGUE.items() if entry.places not in ("loops", "contacts")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_every_quantity_is_compiled_when_it_is_asked_for(robot, compiled, name):
    entry = CATALOGUE[name]
    answers = getattr(compiled, name), getattr(robot, name)
    state = arguments(robot, entry, (9,))
    one = [x if isinstance(x, str) else x[3] for x in state]
    expected = answers[1](*one)
    answers[0](*one)  # asked for
    compiled.wait()
    assert name in compiled.compiled
    found = getattr(compiled, name)(*one)
    assert type(found) is type(expected)
    many = arrays(getattr(compiled, name)(*state))
    for x, y, z, default in zip(arrays(found), arrays(expected), many, arrays(answers[1](*state)), strict=True):
        size = 1 + np.abs(default).max(initial=0)
        if name == "operational_inertia":
            size *= np.linalg.cond(default).max()
        assert_allclose(x, y, rtol=0, atol=1e-12 * size)
        assert_allclose(z, default, rtol=0, atol=1e-12 * size)
        assert_array_equal(z[3], x)


LAYOUTS = {
    "contiguous states": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim > 1 else np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
}


# One quantity for each kind of results.
OF_SHAPES = {tuple(len(r.shape) for r in entry.results): name for name, entry in ENTRIES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SHAPES.values())
@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_is_written_in_any_layout(robot, compiled, name, layout):
    entry, lay = CATALOGUE[name], LAYOUTS[layout]
    answer, state = getattr(compiled, name), arguments(robot, entry, (9,))
    answer(*state)
    compiled.wait()
    expected = answer(*state)
    out = tuple(lay(np.full(x.shape, np.nan)) for x in arrays(expected))
    given = [x if isinstance(x, str) else lay(x) for x in state]
    written = answer(*given, out=out if len(out) > 1 else out[0])
    for x, y, z in zip(out, arrays(expected), arrays(written), strict=True):
        assert_array_equal(x, y)
        assert np.shares_memory(x, z)
    one = [x if isinstance(x, str) else x[0] for x in state]
    single = tuple(np.full(x.shape[1:], np.nan) for x in arrays(expected))
    answer(*one, out=single if len(single) > 1 else single[0])
    for x, y in zip(single, arrays(expected), strict=True):
        assert_array_equal(x, y[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if "frame" in entry.parameters])
def test_every_frame_has_code_of_its_own(robot, compiled, name):
    entry = CATALOGUE[name]
    one = arguments(robot, entry, ())
    for frame in ("com", "body", "base", "mixed", "LOCAL", "local_world_aligned"):
        getattr(compiled, name)(*one, frame)
        compiled.wait()
        assert_allclose(getattr(compiled, name)(*one, frame=frame), getattr(robot, name)(*one, frame), atol=1e-9)


def test_links_and_frames_are_refused_as_by_the_tree(robot, compiled):
    q = robot.neutral()
    for link, frame in (
        ("nowhere", "com"),
        (3, "com"),
        (["tool"], "com"),
        (last(robot), "lokal"),
        (last(robot), []),
    ):
        with pytest.raises((UnknownLinkError, ShapeError)) as ours:
            compiled.jacobian(link, q, frame)
        with pytest.raises((UnknownLinkError, ShapeError)) as theirs:
            Numbers(robot.model).jacobian(link, q, frame)
        assert str(ours.value) == str(theirs.value)
    for wrong in (q[:-1], np.full(robot.nq, np.nan), "word"):
        for answer in (compiled.jacobian, robot.jacobian):
            with pytest.raises(ShapeError):
                answer(last(robot), wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["contribution", "subtree_contribution"])
def test_paths_to_links_are_followed_once(name, monkeypatch):
    """A subtree of part of the coordinates, and of all."""
    robot = two_link()
    compiled, q, qd = robot.compile(threads=1), np.array([0.3, -0.4]), np.array([-1.0, 1.0])
    links = ("link2", "link1")
    for link in links:
        getattr(compiled, name)(link, q, qd)
    compiled.wait()
    for link in links:
        getattr(compiled, name)(link, q, qd)
    expected = [getattr(robot, name)(link, q, qd) for link in links]
    for owner, forgotten in ((robot.model, "path"), (robot.topology, "subtree")):
        monkeypatch.setattr(type(owner), forgotten, None)
    for link, whole in zip(links, expected, strict=True):
        found = getattr(compiled, name)(link, q, qd)
        assert found.coordinates == whole.coordinates
        for part in ("J", "J_dot", "M", "C", "g"):
            assert_allclose(np.asarray(getattr(found, part)), np.asarray(getattr(whole, part)), atol=1e-12)


def test_configurations_are_those_of_the_tree(robot, compiled):
    q, v = robot.random_configuration(np.random.default_rng(1)), np.linspace(-1, 1, 5 * robot.nv).reshape(5, -1)
    assert_array_equal(compiled.neutral(), robot.neutral())
    assert_array_equal(compiled.random_configuration(np.random.default_rng(1)), q)
    moved = robot.integrate(q, v)
    assert_array_equal(compiled.integrate(q, v), moved)
    assert_array_equal(compiled.difference(q, moved), robot.difference(q, moved))
    assert_array_equal(compiled.position_rate(q, v), robot.position_rate(q, v))
    with pytest.raises(ShapeError, match=r"^v has shape"):
        compiled.integrate(q, v[:, :-1])


def test_a_quaternion_must_have_length_one():
    tree = every_joint()
    fast = tree.compile().wait()
    good = np.stack([tree.random_configuration(np.random.default_rng(k)) for k in range(9)])
    for factor in (0.9, 1.1, 0.0):
        q = good.copy()
        q[4, :4] *= factor
        for state in (q[4], q):
            with pytest.raises(ShapeError, match="quaternion"):
                fast.mass_matrix(state)
            with pytest.raises(ShapeError, match="quaternion"):
                fast.mass_matrix(state, out=np.empty((*state.shape[:-1], tree.nv, tree.nv)))
    assert isinstance(fast.mass_matrix, type(len))


def test_another_body_welded_to_the_base_needs_no_other_code_for_the_dynamics():
    tree = ur5()
    tree.compile().wait()
    q = np.zeros(6)
    tree.attach(sd.Inertia.sphere(3.0, 0.1, (0.1, 0.2, 0.3)), to=tree.links[0], name="pedestal")
    fast = tree.compile()
    assert fast.ready
    fast.center_of_mass(q)
    fast.wait()
    assert_allclose(fast.center_of_mass(q), tree.center_of_mass(q), atol=1e-12)


def test_methods_of_links_can_be_pickled(robot, compiled):
    link, q = last(robot), robot.neutral()
    twin = pickle.loads(pickle.dumps(compiled.jacobian))
    assert_allclose(twin(link, q), compiled.jacobian(link, q), atol=1e-12)


def test_a_link_that_does_not_move_is_left_to_the_default_kernel(robot, compiled):
    link, q = robot.links[0], robot.neutral()
    for _ in range(2):
        assert not compiled.contribution(link, q, np.zeros(robot.nv)).coordinates
        compiled.wait()
    assert_array_equal(compiled.jacobian(link, q), np.zeros((6, robot.nv)))
