"""The recursions run as Python, on arrays and on floats, with the results of the compiled kernels."""

import inspect

import numpy as np
import pytest
from cases import cases, norm, total
from hypothesis import given
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.backends.kernels import entry as kernels
from screwdyn.core.errors import InertiaError, SingularAttachmentError
from screwdyn.forms import point
from screwdyn.physics.charts import recentre
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE, INTERNAL
from screwdyn.physics.recursions.links import BODY, FRAMES, link_step
from screwdyn.physics.table import COLUMNS, PLACE, workspace

# Compiled code may round a product and a sum once instead of twice.
ROUNDING = 1e-13


def plain(a):
    """The same numbers as Python floats."""
    return np.array(np.asarray(a).tolist(), dtype=object).reshape(np.shape(a))


def empty(*shape):
    return np.full(shape, np.nan)


def test_a_small_body_that_flies_fast_turns_by_euler_s_equations():
    """I ω̇ = −ω × I ω at any speed, since v × m v = 0."""
    J, tree = np.array([1.0, 2.0, 2.5]) * 1e-12, sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia(1e-6, (0, 0, 0), J), to="base", joint=sd.free())
    for seed in range(5):
        w, v = np.random.default_rng(seed).normal(size=(2, 3))
        for speed in (0.0, 1.0, 1e4):
            found = tree.forward_dynamics(tree.neutral(), np.append(w, speed * v), np.zeros(6))
            np.testing.assert_allclose(found[:3], np.cross(J * w, w) / J, rtol=0, atol=1e-14)
            np.testing.assert_allclose(found[3:], -speed * np.cross(w, v), rtol=0, atol=1e-14 * speed)


def test_a_link_of_a_millimetre_far_out_on_a_turntable_is_a_pendulum():
    """Armatures keep the turntable and its slide at constant rates; the link hangs in the centrifugal field Ω² R."""
    tree, r, i, m, rate, radius = sd.KinematicTree(gravity=(0, 0, 0)), 1e-3, 1e-13, 1e-6, 1.3, 2.0
    tree.attach(sd.Link("table"), to="base", joint=sd.revolute("z", armature=1e30))
    tree.attach(sd.Link("cart"), to="table", joint=sd.prismatic("x", armature=1e30))
    tree.attach(sd.Inertia(m, (r, 0, 0), (i, i, i)), to="cart", joint=sd.revolute("z"), name="bob")
    fastest = m * r * radius * rate**2 / (i + m * r**2)
    for q in np.random.default_rng(1).uniform(-3, 3, size=(20, 3)):
        found = tree.forward_dynamics([q[0], radius, q[2]], [rate, 0, 0.7], np.zeros(3))[2]
        assert found == pytest.approx(-fastest * np.sin(q[2]), rel=0, abs=4e-15 * fastest)


@pytest.mark.parametrize("numbers", [np.asarray, plain], ids=["float64", "python floats"])
@given(case=cases(most=5))
def test_plain_python_is_what_is_compiled(numbers, case):
    tree, model, n = case.tree, case.tree.model, case.tree.nv
    state = {"q": case.q, "qd": case.qd, "qdd": case.qdd}
    state |= dict(zip(ARGUMENTS[3:], case.rng.normal(size=(3, n)), strict=True))
    link, code = tree.links[-1], int(case.rng.integers(len(FRAMES)))
    own = {which: model.places(which, link, BODY) for which in ("all", "subtree", "bodies", "one", "loops", "contacts")}
    framed = {"one": model.places("one", link, code)}
    k = len(model.path(link))
    sizes = {"v": n, "q": n, "k": k}
    M = norm(tree.mass_matrix(case.q))
    kappa = np.linalg.cond(tree.mass_matrix(case.q)) if n else 1
    motion = 1 + total(case.qd) ** 2 + total(case.qdd)
    scale = (1 + M + tree.mass) * motion * 10
    for entry in CATALOGUE.values():
        places = framed if "frame" in entry.parameters else own
        sizes["L"] = len(places[entry.places]) if entry.places else 0
        sizes["10L"] = 10 * sizes["L"]
        shapes = [tuple(sizes[d] if isinstance(d, str) else d for d in result.shape) for result in entry.results]
        outs = [
            empty(int(np.prod(s, dtype=int))) if len(s) < 2 else empty(int(np.prod(s[:-1], dtype=int)), s[-1])
            for result, s in zip(entry.results, shapes, strict=True)
        ]
        status = entry.recursion(
            numbers(model.table),
            *(numbers(state[name]) for name in entry.arguments),
            *(numbers(np.zeros(n)) for _ in entry.at_rest),
            *([numbers(places[entry.places])] if entry.places else []),
            *(
                [tuple(numbers(empty(*(sizes[d] if isinstance(d, str) else d for d in s))) for s in entry.scratch)]
                * bool(entry.scratch)
            ),
            workspace(model.table, lambda *shape: numbers(empty(*shape))),
            *entry.handed(found := [numbers(out) for out in outs]),
        )
        given = {"link": link, "frame": FRAMES[code]} | state
        arguments = {x: given[x] for x in entry.signature.parameters if x in given}
        if status:
            with pytest.raises((SingularAttachmentError, InertiaError)):
                getattr(tree, entry.name)(**arguments)
            continue
        given_ = getattr(tree, entry.name)(**arguments)
        if entry.name == "subtree_contribution":
            given_ = [padded.matrix(tree.coordinates) for padded in (given_.M, given_.C, given_.g)]
            found = found[2:]
        elif entry.name == "contribution":
            given_ = [given_.J, given_.J_dot, *map(np.asarray, (given_.M, given_.C, given_.g))]
        else:
            given_ = given_ if isinstance(given_, tuple) else (given_,)
            found = [out for out, result in zip(found, entry.results, strict=True) if not result.hidden]
        for mine, expected in zip(found, given_, strict=True):
            # What may fail divides, by the mass or by pivots: the error of an inverse grows with its square.
            may_fail = inspect.signature(entry.recursion).return_annotation is int
            worst = scale * (kappa * (1 + norm(expected)) ** 2 if may_fail else 1)
            mine = np.asarray(mine, dtype=float).reshape(np.shape(expected))
            assert np.abs(mine - expected).max(initial=0) <= ROUNDING * worst, entry.name


def test_the_step_of_a_link_in_plain_python_is_what_is_compiled(monkeypatch):
    compared, compiled = [], kernels.link_step

    def both(numbers, rows, group, path, state):
        found = compiled(numbers, rows, group, path, state)
        table, q = numbers[:-PLACE].reshape(rows + 1, COLUMNS), state[0]
        if group:
            given, table, q = table, table.copy(), empty(rows)
            recentre(given, np.full(rows, -1), np.array([[0, 0, *group]]), state[0], table, q)
        arguments = (table, q, *state[1:], numbers[-PLACE:].reshape(1, PLACE))
        outs = [empty(*out.shape) for out in found]
        link_step(*arguments, workspace(table, empty), *INTERNAL["link_step"].handed(outs))
        compared.extend(zip(outs, found, strict=True))
        return found

    monkeypatch.setattr(point, "link_step", both)
    rng = np.random.default_rng(0)
    tree = sd.testing.random_tree(rng, 2 * len(EVERY), joints=EVERY)
    tree.at(tree.random_configuration(rng), rng.normal(size=tree.nv)).contributions()
    assert len(compared) == 7 * len(tree.links)
    for mine, expected in compared:
        assert_allclose(mine, expected, rtol=0, atol=ROUNDING * (1 + np.abs(expected).max(initial=0)))
