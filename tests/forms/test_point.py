"""The progressive evaluation at one state: each term from its parent's, kept, and the same as by the recursions."""

import pickle
import re

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.cli.main import main
from screwdyn.core.errors import ShapeError, TopologyError, UnboundSymbolError, UnknownNameError

CRATE = sd.Inertia.box(2.0, (0.3, 0.2, 0.1), com=(0.1, 0.2, -0.3))


@pytest.fixture
def point():
    arm = sd.robots.ur5()
    return arm.at(np.full(6, 0.3), np.arange(6.0))


def agree(point, tree, q, qd):
    """Every term of a point is that of the tree by the recursions, which compute it in other frames."""
    for own, other in zip(point.contributions(), tree.contributions(q, qd), strict=True):
        order = [own.coordinates.index(name) for name in other.coordinates]
        assert_allclose(own.J[:, order], other.J, rtol=0, atol=1e-12)
        assert_allclose(own.J_dot[:, order], other.J_dot, rtol=0, atol=1e-11)
        for term in ("M", "C", "g"):
            expected = getattr(other, term)
            size = np.abs(expected.array).max(initial=1.0)
            assert_allclose(getattr(own, term).matrix(other.coordinates), expected.array, rtol=0, atol=1e-12 * size)
        assert_allclose(point.pose(own.link), tree.forward_kinematics(own.link, q), rtol=0, atol=1e-12)
        assert_allclose(point.twist(own.link), tree.link_twist(own.link, q, qd, "body"), rtol=0, atol=1e-11)
    for term, total in (
        ("M", tree.mass_matrix(q)),
        ("C", tree.coriolis_matrix(q, qd)),
        ("g", tree.gravity_vector(q)),
    ):
        assert_allclose(
            getattr(point, term).matrix(tree.coordinates), total, rtol=0, atol=1e-11 * np.abs(total).max(initial=1.0)
        )


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(EVERY), min_size=2, max_size=5))
def test_terms_are_those_of_the_recursions(seed, kinds):
    rng = np.random.default_rng(seed)
    tree = sd.testing.random_tree(rng, len(kinds) + 2, joints=kinds)
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    agree(tree.at(q, qd), tree, q, qd)


def test_rotors_followers_armatures_and_massless_links():
    tree = sd.KinematicTree(gravity=(1.0, -2.0, -9.0))
    rotor = sd.Rotor(1e-2, ratio=30.0)
    tree.attach(CRATE, to="base", joint=sd.revolute("y", name="shoulder", armature=0.3), name="upper")
    tree.attach(CRATE, to="upper", joint=sd.revolute("z", (0.1, 0, 0), rotor=rotor, name="elbow"), at=(0.5, 0, 0))
    tree.attach(sd.Link("frame"), to="payload", at=(0.2, 0, 0))
    follower = sd.revolute("x", name="finger", mimic=sd.Mimic("elbow", -0.5, 0.2), armature=0.1)
    tree.attach(CRATE, to="upper", joint=follower, name="beside")
    tree.attach(CRATE, to="frame", joint=sd.prismatic("x", name="inner", mimic=sd.Mimic("finger", 0.7)), name="beyond")
    q, qd = np.array([0.4, -0.8]), np.array([1.0, -2.0])
    agree(tree.at(q, qd), tree, q, qd)


def test_a_leader_beyond_its_follower_has_one_column():
    arm = sd.robots.ur5()
    arm.replace_joint("shoulder_link", sd.revolute("z", name="first", mimic=sd.Mimic("elbow_joint", 0.5, 0.1)))
    q, qd = np.array([0.4, -0.8, 0.3, 0.7, -0.2]), np.arange(1.0, 6.0)
    point = arm.at(q, qd)
    agree(point, arm, q, qd)
    assert (point.q == q).all() and (point.qd == qd).all()


def test_terms_that_points_share_cannot_be_written(point):
    own = point.contribution("tool0")
    for array in (*own.arrays, own.M.array, point.M.array, point.C.array, point.g.array):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_attaching_computes_the_new_term_alone(point):
    before = {own.link: own for own in point.contributions()}
    M = point.M
    caught = point.attach(CRATE, to="tool0", joint=sd.spherical(), name="crate", q=[0, 0, 0.6, 0.8], qd=[1, 2, 3])
    assert all(caught.contribution(link) is own for link, own in before.items())
    assert caught.coordinates == (*point.coordinates, "crate[wx]", "crate[wy]", "crate[wz]")
    assert caught.M == M + caught.contribution("crate").M
    agree(caught, caught.tree, caught.q, caught.qd)
    assert "crate" not in point.links
    released = caught.detach("crate")
    assert released.links == point.links
    assert released.contribution("tool0") is before["tool0"]
    agree(released, released.tree, point.q, point.qd)
    agree(released.attach(CRATE, to="forearm_link", name="crate"), *_with_crate(point))


def _with_crate(point):
    tree = point.tree
    tree.attach(CRATE, to="forearm_link", name="crate")
    return tree, point.q, point.qd


def test_points_share_what_either_has_computed(point):
    caught = point.attach(CRATE, to="tool0", name="crate")
    caught.contribution("crate")
    assert point.contribution("tool0") is caught.contribution("tool0")
    assert point.attach(CRATE, to="tool0", name="crate").contribution("crate") == caught.contribution("crate")


def test_closed_loops_change_no_term():
    arm, q, qd = sd.robots.ur5(), np.full(6, 0.3), np.arange(6.0)
    arm.close("tool0", to=arm.base, joint=sd.spherical(), at=arm.forward_kinematics("tool0", q))
    agree(arm.at(q, qd), arm, q, qd)
    two = arm.at(q, qd).attach(arm, to="forearm_link", prefix="other/", q=q, qd=qd)
    assert len(two.tree.loops) == 2
    agree(two, two.tree, two.q, two.qd)


def test_a_copy_from_a_pickle_computes_the_same(point):
    caught = point.attach(CRATE, to="tool0", joint=sd.spherical(), q=[0, 0, 0.6, 0.8])
    assert pickle.loads(pickle.dumps(caught)).contributions() == caught.contributions()


def test_a_point_is_of_the_tree_as_it_was():
    arm = sd.robots.two_link()
    point = arm.at([0.1, 0.2])
    arm.detach("link2")
    assert point.links == ("base", "link1", "link2")
    assert point.contribution("link2").M.shape == (2, 2)
    assert sd.KinematicTree().at([]).M.shape == (0, 0)


def test_wrong_input_is_refused(point):
    arm = sd.robots.two_link()
    with pytest.raises(ShapeError, match="one state"):
        arm.at(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="theta2"):
        arm.at([0.0])
    with pytest.raises(ShapeError, match="q of the new links must be 1 finite numbers"):
        point.attach(CRATE, to="tool0", joint=sd.revolute("x"), q=[1, 2])
    with pytest.raises(ShapeError, match="qd of the new links"):
        point.attach(CRATE, to="tool0", joint=sd.revolute("x"), qd=[np.nan])
    for wrong in ("a", 1j, [None], sympy.Symbol("a"), [[1.0]]):
        with pytest.raises(ShapeError, match="q of the new links must be 1 finite numbers"):
            point.attach(CRATE, to="tool0", joint=sd.revolute("x"), q=wrong)
    with pytest.raises(ShapeError, match="path to link 'upper_arm_link' are so large"):
        sd.robots.ur5().at(np.zeros(6), [0, 1e308, 0, 0, 0, 0]).contribution("upper_arm_link")
    with pytest.raises(UnknownNameError):
        point.contribution("hand")
    with pytest.raises(TopologyError):
        point.attach(CRATE, to="tool0", name="forearm_link")
    heavy = sd.Inertia(sympy.Symbol("m", positive=True))
    with pytest.raises(UnboundSymbolError, match="m"):
        point.attach(heavy, to="tool0", name="heavy").contribution("heavy")
    arm.attach(heavy, to="link2", name="heavy")
    with pytest.raises(UnboundSymbolError, match="m"):
        arm.at([0.0, 0.0])


BOX = sd.Inertia.box(2.0, (0.1, 0.2, 0.3), com=(0.1, 0, -0.2))


def crane() -> sd.KinematicTree:
    """A slide with a mast that carries a hook, and a branch beside it."""
    tree = sd.KinematicTree()
    tree.attach(BOX, to="base", joint=sd.prismatic("x", name="rail"), name="cart")
    tree.attach(BOX, to="cart", joint=sd.revolute("z", name="turn"), name="mast")
    tree.attach(BOX, to="cart", joint=sd.revolute("y"), name="arm")
    tree.attach(BOX, to="mast", joint=sd.revolute("y", passive=True, name="swing"), at=(0.5, 0, 1), name="crate")
    return tree


Q, QD = np.array([0.1, 0.4, -0.3, 0.7]), np.array([0.5, -1.0, 2.0, 0.3])


def rows(text: str) -> dict[str, list[float]]:
    """The numbers of the table by coordinate."""
    lines = text.split("units\n")[1].split("\n\n")[0].splitlines()
    return {line.split()[0]: [float(x) for x in re.split(r"\s+", line)[1:7]] for line in lines}


def test_the_table_has_the_numbers_of_the_link_and_of_the_tree():
    tree = crane()
    text = str(tree.explain("crate", Q, QD))
    part = tree.contribution("crate", Q, QD)
    M, C, g = tree.mass_matrix(Q), tree.coriolis_matrix(Q, QD), tree.gravity_vector(Q)
    found = rows(text)
    assert [*found] == ["rail", "turn", "swing"]
    rates = dict(zip(tree.coordinates, QD, strict=True))
    for name, numbers in found.items():
        k = tree.coordinates.index(name)
        force = sum(part.C[name, other] * rates[other] for other in part.coordinates)
        expected = [part.M[name, name], M[k, k], force, (C @ QD)[k], part.g[name], g[k]]
        np.testing.assert_allclose(numbers, expected, rtol=1e-3, atol=1e-12)
    assert "crate: 2 kg, on mast by the passive revolute joint swing." in text
    assert "3 of 4 coordinates" in text and "columns of arm are zero" in text
    assert re.search(r"rail .*kg, N$", text, re.M) and re.search(r"turn .*kg m², N m$", text, re.M)
    own, total = map(float, re.search(r"Kinetic energy: (\S+) J of (\S+) J", text).groups())
    assert total == pytest.approx(tree.kinetic_energy(Q, QD), rel=1e-3)
    assert own == pytest.approx(0.5 * (part.M @ QD[[0, 1, 3]]) @ QD[[0, 1, 3]], rel=1e-3)


def test_without_a_state_the_tree_is_neutral_and_at_rest():
    tree = crane()
    text = str(tree.explain("crate"))
    assert "q not given: neutral; qd not given: zero" in text and "Kinetic energy" not in text
    assert rows(text) == rows(str(tree.explain("crate", np.zeros(4), np.zeros(4))))


def test_later_changes_do_not_affect_it():
    tree = crane()
    handle = tree.attach(BOX, to="crate", name="load")
    explained = tree.explain(handle, Q, QD)
    before = str(explained)
    tree.detach(handle)
    assert str(explained) == repr(explained) == before and len(explained.plot().axes) == 6  # with three scales


def test_links_that_do_not_move_and_locked_joints():
    tree = crane()
    assert "it contributes to no coordinate" in str(tree.explain("base"))
    assert "contributes to no coordinate" in str(sd.KinematicTree().explain("base"))
    tree.lock("swing")
    assert "by the locked passive revolute joint swing" in str(tree.explain("crate"))


def test_the_maps_show_the_contribution_over_all_coordinates():
    tree = crane()
    figure = tree.explain("crate", Q, QD).plot()
    part = tree.contribution("crate", Q, QD)
    maps = figure.axes[:3]  # before those of the colour scales
    for ax, term in zip(maps, (part.M, part.C, part.g), strict=True):
        ground, values = (np.ma.filled(c.get_array(), np.nan) for c in ax.collections)
        expected = term.matrix(tree.coordinates).reshape(4, -1)
        np.testing.assert_allclose(np.nan_to_num(values), expected, atol=1e-12)
        # The branch beside the path is blank, in rows and in columns.
        assert np.isnan(ground[2]).all() and np.isfinite(ground[[0, 1, 3], 0]).all()
        low, high = ax.collections[1].get_clim()
        assert high == -low == np.abs(expected).max()
    assert [label.get_text() for label in maps[0].get_yticklabels()] == [*tree.coordinates]
    assert [label.get_text() for label in maps[1].get_xticklabels()] == [*tree.coordinates]
    assert maps[2].collections[1].get_array().shape == (4, 1)
    # M[rail, rail] is a number of the map.
    assert "2" in {text.get_text() for text in maps[0].texts}


def test_a_large_tree_has_no_numbers_in_its_cells_and_rest_has_no_scale():
    tree = sd.KinematicTree()
    for k in range(12):
        tree.attach(BOX, to=f"link{k - 1}" if k else "base", joint=sd.revolute("z"), name=f"link{k}")
    figure = tree.explain("link11").plot()
    M, C, g = figure.axes[:3]
    assert not M.texts and C.get_title().endswith(": 0") and g.get_title().endswith(": 0")


def test_maps_are_drawn_into_given_axes():
    explained = crane().explain("crate", Q, QD)
    axes = explained.plot().axes
    with pytest.raises(sd.ScrewdynError, match=r"ax must be one Axes for each panel, here 3 .*; got 2"):
        explained.plot(axes[:2])
    other = Figure()
    own = other.subplots(1, 3)
    assert explained.plot(ax=own) is other and len(own[0].collections) == 2


def test_there_is_no_map_of_a_tree_without_joints():
    tree = sd.KinematicTree()
    tree.attach(BOX, to="base", name="block")
    explained = tree.explain("block")
    with pytest.raises(sd.ScrewdynError, match="there is nothing to draw of 'block': no joint of the tree moves"):
        explained.plot()
    assert explained._repr_html_().endswith("it contributes to no coordinate.</pre>")


def test_names_are_no_formulas():
    tree = sd.KinematicTree()
    tree.attach(BOX, to="base", joint=sd.revolute("z", name="$x_$"), name=r"$\frac{a$")
    figure = tree.explain(r"$\frac{a$").plot()
    figure.canvas.draw()
    assert figure.get_suptitle().startswith(r"$\frac{a$: 2 kg") and not figure._suptitle.get_parse_math()


@pytest.mark.slow
def test_a_notebook_shows_table_and_maps():
    page = crane().explain("crate", Q, QD)._repr_html_()
    assert page.startswith("<pre>crate: 2 kg") and 'src="data:image/png;base64,' in page


def test_an_explanation_refuses_wrong_input():
    tree = crane()
    with pytest.raises(sd.UnknownNameError, match=r"'crat'.*'crate'"):
        tree.explain("crat")
    with pytest.raises(sd.ShapeError, match="explain takes one state"):
        tree.explain("crate", np.zeros((3, 4)))
    with pytest.raises(sd.ShapeError):
        tree.explain("crate", np.zeros(3))
    for wrong in (sd.State(tree), {"rail": 1.0}, "rail", [[0.1], [0.2, 0.3]]):
        with pytest.raises(sd.ShapeError, match="q must be an array of real numbers"):
            tree.explain("crate", wrong)
        with pytest.raises(sd.ShapeError, match="qd must be an array of real numbers"):
            tree.explain("crate", Q, wrong)


@pytest.mark.slow
def test_the_command_prints_the_table_and_draws_the_maps(tmp_path, capsys):
    robot = tmp_path / "crane.json"
    robot.write_text(crane().to_json())
    assert main(["explain", str(robot), "crate", "--output", str(tmp_path / "crate.png")]) == 0
    assert capsys.readouterr().out.startswith(str(crane().explain("crate")))
    assert (tmp_path / "crate.png").stat().st_size > 1000
    assert main(["explain", str(robot), "crat"]) == 2
