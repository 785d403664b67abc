"""What one link contributes, against its contribution and the totals of the tree."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import screwdyn as sd
from screwdyn.cli.main import main

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
    assert figure.get_suptitle().startswith(r"\$\frac{a\$: 2 kg")


def test_a_notebook_shows_table_and_maps():
    page = crane().explain("crate", Q, QD)._repr_html_()
    assert page.startswith("<pre>crate: 2 kg") and 'src="data:image/png;base64,' in page


def test_wrong_input_is_refused():
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


def test_the_command_prints_the_table_and_draws_the_maps(tmp_path, capsys):
    robot = tmp_path / "crane.json"
    robot.write_text(crane().to_json())
    assert main(["explain", str(robot), "crate", "--output", str(tmp_path / "crate.png")]) == 0
    assert capsys.readouterr().out.startswith(str(crane().explain("crate")))
    assert (tmp_path / "crate.png").stat().st_size > 1000
    assert main(["explain", str(robot), "crat"]) == 2
