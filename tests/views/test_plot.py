import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.screws.rotations import quaternion_of
from screwdyn.views import figures, plot

CRATE = sd.Inertia.box(1.0, (0.1, 0.1, 0.1), com=(0, -0.2, 0))


def arm() -> sd.KinematicTree:
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(sd.Inertia.rod(2.0, 0.5, axis="x", com=(0.25, 0, 0)), to="base", joint=sd.revolute("z"), name="upper")
    rod = sd.Inertia.rod(1.0, 0.4, axis="x", com=(0.2, 0, 0))
    tree.attach(rod, to="upper", joint=sd.prismatic("x"), at=(0.5, 0, 0), name="slide")
    return tree


@pytest.fixture(scope="module")
def run() -> sd.Run:
    tree = arm()
    hook = sd.revolute("z", passive=True, name="swing")
    events = [
        sd.Grasp(CRATE, to="slide", at=(0.4, 0, 0), joint=hook, name="crate", twist="at_rest", time=0.3),
        sd.Release("crate", time=0.7),
    ]
    state = sd.State(tree, [0.2, 0.05], [0.5, 0])
    return sd.simulate(tree, state, 1.0, lambda t, s: {"upper": 8.0, "slide": 4.0}, events, step=0.02)


def panels(figure) -> dict:
    return {ax.get_title(loc="left"): ax for ax in figure.axes}


def line(ax, label):
    return next(curve for curve in ax.get_lines() if curve.get_label() == label)


def test_joints_of_several_freedoms_are_drawn_by_position_and_by_force() -> None:
    tree = sd.KinematicTree()
    tree.attach(CRATE, to="base", joint=sd.free(name="ship"), name="ship")
    tree.attach(CRATE, to="ship", joint=sd.spherical(name="hip", passive=True), name="leg")
    tree.attach(CRATE, to="ship", joint=sd.cylindrical(name="pin", passive=True), name="arm")
    wind = {"ship": np.array([0, 0, 0, 1.0, 0, 0])}
    run = sd.simulate(tree, sd.State(tree), 0.1, lambda t, s: {"ship[vz]": 9.0}, wrenches=lambda t, s: wind, step=0.02)
    driven, passive, torque, ledger = panels(plot.plot_run(run)).values()
    np.testing.assert_array_equal(line(driven, "ship[pz]").get_ydata(), 100 * run["ship[pz]"])
    np.testing.assert_array_equal(line(passive, "pin[angle]").get_ydata(), np.degrees(run["pin[angle]"]))
    vector = np.array([line(passive, f"hip[r{x}]").get_ydata() for x in "xyz"]).T
    sines = np.array([run[f"hip[{x}]"] for x in "xyz"]).T
    np.testing.assert_allclose(quaternion_of(np.radians(vector))[:, :3], sines, atol=1e-15)
    assert np.abs(vector).max() > 0.01
    assert not any(line.get_label().startswith("ship[w") for line in driven.get_lines())
    np.testing.assert_array_equal(line(torque, "ship[vz]").get_ydata(), run.torque("ship[vz]"))
    np.testing.assert_array_equal(line(ledger, "work of external wrenches").get_ydata(), run.energy.external)
    assert driven.get_ylabel() == "slide (cm), rotation vector (°)"
    assert passive.get_ylabel() == "angle (°), slide (cm), rotation vector (°)"
    assert torque.get_ylabel() == "torque (N m), force (N)"


def test_a_rotation_is_drawn_without_jumps_whatever_the_sign_of_its_quaternion() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.spherical(name="hip"), name="ball")
    run = sd.simulate(tree, sd.State(tree, qd=[0, 0, 1.0]), 6.0, step=0.05)
    for k, state in enumerate(run.states):
        state.q *= (-1) ** (k // 7)
    turn = line(panels(plot.plot_run(run))["position of the driven joints"], "hip[rz]").get_ydata()
    np.testing.assert_allclose(turn, np.degrees(run.t), atol=1e-6)


def test_every_quantity_has_its_panel_and_its_unit(run: sd.Run) -> None:
    found = panels(plot.plot_run(run))
    driven, passive, torque, ledger = found.values()
    np.testing.assert_array_equal(line(driven, "upper").get_ydata(), np.degrees(run["upper"]))
    np.testing.assert_array_equal(line(driven, "slide").get_ydata(), 100 * run["slide"])
    np.testing.assert_array_equal(line(passive, "swing").get_ydata(), np.degrees(run["swing"]))
    np.testing.assert_array_equal(line(torque, "slide").get_ydata(), run.torque("slide"))
    assert driven.get_ylabel() == "angle (°), slide (cm)"
    assert passive.get_ylabel() == "angle (°)"
    assert torque.get_ylabel() == "torque (N m), force (N)"
    assert ledger.get_xlabel() == "time (s)"
    assert "passive" in passive.get_title(loc="left")


def test_the_ledger_is_drawn_entry_by_entry(run: sd.Run) -> None:
    ledger = plot.plot_run(run).axes[-1]
    curves = {c.get_label().split(":")[0]: c.get_ydata() for c in ledger.get_lines() if c.get_label()[0] != "_"}
    # Nothing is damped here, so no heat of the joints is drawn.
    assert "heat, joints" not in curves
    assert curves["heat, impacts"][-1] < 0
    stored = curves["kinetic"] + curves["potential, change"] - curves["kinetic"][0]
    explained = curves["work of the motors"] + curves["brought or taken by payloads"] + curves["heat, impacts"]
    np.testing.assert_allclose(stored, explained + curves["unaccounted for"], atol=1e-12)


def test_grasp_and_release_are_marked_in_every_panel(run: sd.Run) -> None:
    figure = plot.plot_run(run)
    for ax in figure.axes:
        marks = {text.get_text(): text.xy[0] for text in ax.texts}
        assert marks == {"grasp crate": pytest.approx(0.3), "release crate": pytest.approx(0.7)}
        dashed = [c.get_xdata()[0] for c in ax.get_lines() if len(c.get_xdata()) == 2]
        assert dashed == [pytest.approx(0.3), pytest.approx(0.7)]


def test_two_events_at_one_time_share_a_line() -> None:
    tree = arm()
    grasps = [sd.Grasp(CRATE, to="slide", name=name, twist="co_moving", time=0.1) for name in ("left", "right")]
    figure = plot.plot_run(sd.simulate(tree, sd.State(tree), 0.2, None, grasps, step=0.05))
    assert [text.get_text() for text in figure.axes[0].texts] == ["grasp left, grasp right"]


def test_repeated_limits_have_a_line_each_and_one_text() -> None:
    tree = sd.KinematicTree()
    joint = sd.prismatic("z", limits=(0, 9))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=joint, name="ball")
    run = sd.simulate(tree, sd.State(tree, [0.001]), 1.0, stops=sd.SpringStop(1e5), step=0.01)
    ax = plot.plot_run(run).axes[0]
    assert len(run.events) > 20
    assert sum(len(c.get_xdata()) == 2 for c in ax.get_lines()) == len(run.events)
    assert 1 < len(ax.texts) <= 11 and {text.get_text() for text in ax.texts} == {"reach limit of ball"}


def test_legends_stand_beside_the_data(run: sd.Run) -> None:
    figure = plot.plot_run(run)
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= ax.get_window_extent().x1
        assert box.x1 <= figure.bbox.x1


def test_the_marks_stand_above_the_curves(run: sd.Run) -> None:
    figure = plot.plot_run(run)
    figure.draw_without_rendering()
    for ax in figure.axes:
        highest = max(np.nanmax(c.get_ydata()) for c in ax.get_lines() if len(c.get_xdata()) > 2)
        top = ax.transData.transform((0, highest))[1]
        assert all(text.get_window_extent().y0 >= top - 1 for text in ax.texts)


def test_a_run_draws_itself_at_a_readable_width(run: sd.Run, tmp_path: Path) -> None:
    figure = run.plot()
    assert 1200 <= figure.bbox.width <= 1600
    figures.save(figure, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_panels_of_what_a_robot_lacks_are_left_out() -> None:
    passive = sd.KinematicTree()
    passive.attach(CRATE, to="base", joint=sd.revolute("x", passive=True), name="pendulum")
    welded = sd.KinematicTree()
    for tree, count in ((passive, 2), (welded, 1)):
        figure = plot.plot_run(sd.simulate(tree, sd.State(tree), 0.1, step=0.05))
        assert len(figure.axes) == count
        figure.draw_without_rendering()


def test_forty_joints_with_long_names_still_fit() -> None:
    tree = sd.KinematicTree()
    link = "base"
    for k in range(40):
        name = f"a_joint_with_a_very_long_name_{k}"
        link = tree.attach(CRATE, to=link, joint=sd.revolute("xyz"[k % 3]), name=name).name
    figure = plot.plot_run(sd.simulate(tree, sd.State(tree), 1e-3, step=5e-4))
    figure.draw_without_rendering()
    first = figure.axes[0]
    assert first.get_window_extent().width > 500
    assert len({curve.get_color() for curve in first.get_lines()}) == 40
    assert first.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_a_picture_needs_a_known_ending_and_a_folder(tmp_path: Path) -> None:
    assert figures.writable(tmp_path / "a.PNG") == tmp_path / "a.PNG"
    with pytest.raises(sd.ScrewdynError, match=r"arm\.urdf'.*end in .*\.png"):
        figures.writable(tmp_path / "arm.urdf")
    with pytest.raises(sd.ScrewdynError, match="end in"):
        figures.writable(tmp_path / "figure")
    with pytest.raises(sd.ScrewdynError, match="there is no folder"):
        figures.writable(tmp_path / "nowhere" / "a.png")


def test_a_picture_that_cannot_be_written_says_why(run: sd.Run, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(sd.ScrewdynError, match=r"folder\.png': Is a directory"):
        figures.save(run.plot(), tmp_path / "folder.png")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_without_matplotlib_the_message_says_what_to_install() -> None:
    out = python(
        "import sys; sys.modules['matplotlib'] = None\n"
        "import screwdyn\n"
        "try:\n    import screwdyn.plot\nexcept screwdyn.ScrewdynError as error:\n    print(error)\n"
    )
    assert "pip install 'screwdyn[plot]'" in out


def test_drawing_leaves_pyplot_and_importing_leaves_matplotlib_alone() -> None:
    out = python(
        "import sys, screwdyn\n"
        "print('matplotlib' in sys.modules)\n"
        "import screwdyn.plot\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    assert out.split() == ["False", "False"]
