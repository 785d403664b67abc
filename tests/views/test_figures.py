import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import screwdyn as sd
from screwdyn.views import figures

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
    found = panels(run.plot(coordinates=("ship", "hip", "pin")))
    driven, slides, passive = (
        found[f"{what} joints"] for what in ("angles of driven", "displacements of driven", "angles of passive")
    )
    torque, force, ledger = found["torques of motors"], found["forces of motors"], found["energy"]
    np.testing.assert_array_equal(line(slides, "ship[pz]").get_ydata(), run["ship[pz]"])
    np.testing.assert_array_equal(line(passive, "pin[angle]").get_ydata(), np.degrees(run["pin[angle]"]))
    vector = np.array([line(passive, f"hip[r{x}]").get_ydata() for x in "xyz"]).T
    sines = np.array([run[f"hip[{x}]"] for x in "xyz"]).T
    np.testing.assert_allclose(Rotation.from_rotvec(np.radians(vector)).as_quat()[:, :3], sines, atol=1e-15)
    assert np.abs(vector).max() > 0.01
    assert not any(line.get_label().startswith("ship[w") for line in driven.get_lines())
    np.testing.assert_array_equal(line(force, "ship[vz]").get_ydata(), run.torque("ship[vz]"))
    wrench = f"work of external wrenches, +{run.energy.external[-1]:.3g} J"
    np.testing.assert_array_equal(line(ledger, wrench).get_ydata(), run.energy.external)
    assert [ax.get_ylabel() for ax in (driven, slides, torque, force)] == [
        "angle (°)",
        "displacement (m)",
        "torque (N m)",
        "force (N)",
    ]
    assert [x.get_label() for x in driven.get_lines()] == ["ship[rx]", "ship[ry]", "ship[rz]"]


def test_a_rotation_is_drawn_without_jumps_whatever_the_sign_of_its_quaternion() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.spherical(name="hip"), name="ball")
    run = sd.simulate(tree, sd.State(tree, qd=[0, 0, 1.0]), 6.0, step=0.05)
    for k, state in enumerate(run.states):
        state.q *= (-1) ** (k // 7)
    turn = line(panels(run.plot())["angles of driven joints"], "hip[rz]").get_ydata()
    np.testing.assert_allclose(turn, np.degrees(run.t), atol=1e-6)


@pytest.mark.slow
def test_every_quantity_has_its_panel_and_its_unit(run: sd.Run) -> None:
    found = panels(run.plot())
    shown = {title: (ax.get_lines()[0].get_label(), ax.get_ylabel()) for title, ax in found.items()}
    assert shown == {
        "angles of driven joints": ("upper", "angle (°)"),
        "displacements of driven joints": ("slide", "displacement (m)"),
        "angles of passive joints": ("swing", "angle (°)"),
        "torques of motors": ("upper", "torque (N m)"),
        "forces of motors": ("slide", "force (N)"),
        "energy": ("kinetic", "energy (J)"),
    }
    for (name, values), ax in zip(
        {
            "upper": np.degrees(run["upper"]),
            "slide": run["slide"],
            "swing": np.degrees(run["swing"]),
        }.items(),
        found.values(),
        strict=False,
    ):
        np.testing.assert_array_equal(line(ax, name).get_ydata(), values)
    np.testing.assert_array_equal(line(found["forces of motors"], "slide").get_ydata(), run.torque("slide"))
    assert found["energy"].get_xlabel() == "time (s)"


@pytest.mark.slow
def test_the_ledger_is_drawn_entry_by_entry(run: sd.Run) -> None:
    ledger = run.plot().axes[-1]
    curves = {c.get_label().split(", ")[0]: c.get_ydata() for c in ledger.get_lines() if c.get_label()[0] != "_"}
    # Nothing is damped here, so no heat of the joints is drawn.
    assert "lost in joints" not in curves
    assert curves["lost in impacts"][-1] < 0
    stored = curves["kinetic"] + curves["potential"] - curves["kinetic"][0]
    explained = curves["work of the motors"] + curves["brought or taken by payloads"] + curves["lost in impacts"]
    np.testing.assert_allclose(stored, explained + curves["unaccounted for"], atol=1e-12)
    loss = line(ledger, f"lost in impacts, −{run.energy.impact_loss[-1]:.3g} J")
    rest = next(c for c in ledger.get_lines() if c.get_label().startswith("unaccounted for, up to "))
    assert all(rest.zorder < c.zorder for c in ledger.get_lines() if c is not rest) and loss.get_visible()


def test_grasp_and_release_are_marked_in_every_panel(run: sd.Run) -> None:
    figure = run.plot()
    for ax in figure.axes:
        marks = {text.get_text(): text.xy[0] for text in ax.texts}
        assert marks == {"grasp crate": pytest.approx(0.3), "release crate": pytest.approx(0.7)}
        dashed = [c.get_xdata()[0] for c in ax.get_lines() if len(c.get_xdata()) == 2]
        assert dashed == [pytest.approx(0.3), pytest.approx(0.7)]


def test_two_events_at_one_time_share_a_line() -> None:
    tree = arm()
    grasps = [sd.Grasp(CRATE, to="slide", name=name, twist="co_moving", time=0.1) for name in ("left", "right")]
    figure = sd.simulate(tree, sd.State(tree), 0.2, None, grasps, step=0.05).plot()
    assert [text.get_text() for text in figure.axes[0].texts] == ["grasp left, grasp right"]


@pytest.mark.slow
def test_repeated_limits_have_a_line_each_and_one_text() -> None:
    tree = sd.KinematicTree()
    joint = sd.prismatic("z", limits=(0, 9))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=joint, name="ball")
    run = sd.simulate(tree, sd.State(tree, [0.001]), 1.0, stops=sd.SpringStop(1e5), step=0.01)
    ax = run.plot().axes[0]
    assert len(run.events) > 20
    marks = [c for c in ax.get_lines() if len(c.get_xdata()) == 2 and c.get_xdata()[0] == c.get_xdata()[1]]
    assert len(marks) == len(run.events)
    assert 1 < len(ax.texts) <= 11 and {text.get_text().removesuffix(" →") for text in ax.texts} == {
        "reach limit of ball"
    }


@pytest.mark.slow
def test_legends_stand_beside_the_data(run: sd.Run) -> None:
    figure = run.plot()
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= ax.get_window_extent().x1
        assert box.x1 <= figure.bbox.x1


@pytest.mark.slow
def test_the_marks_stand_above_the_curves(run: sd.Run) -> None:
    figure = run.plot()
    figure.draw_without_rendering()
    for ax in figure.axes:
        highest = max(np.nanmax(c.get_ydata()) for c in ax.get_lines() if len(c.get_xdata()) > 2)
        top = ax.transData.transform((0, highest))[1]
        assert all(text.get_window_extent().y0 >= top - 1 for text in ax.texts)


@pytest.mark.slow
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
        figure = sd.simulate(tree, sd.State(tree), 0.1, step=0.05).plot()
        assert len(figure.axes) == count
        figure.draw_without_rendering()


def test_forty_joints_with_long_names_still_fit() -> None:
    tree = sd.KinematicTree()
    link = "base"
    for k in range(40):
        name = f"a_joint_with_a_very_long_name_{k}"
        link = tree.attach(CRATE, to=link, joint=sd.revolute("xyz"[k % 3]), name=name).name
    figure = sd.simulate(tree, sd.State(tree), 1e-3, step=5e-4).plot()
    figure.draw_without_rendering()
    first = figure.axes[0]
    assert first.get_window_extent().width > 500
    coloured = [curve for curve in first.get_lines() if curve.get_lw() > 1]
    assert len(coloured) == len({curve.get_color() for curve in coloured}) == 8
    assert first.get_legend().get_texts()[-1].get_text() == "32 others" and len(first.get_lines()) == 40
    assert first.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_long_names_keep_their_ends_and_names_are_no_formulas() -> None:
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    names = [f"joint_with_a_long_name_of_the_left_hand_{k}" for k in range(3)] + ["$x_$"]
    for k, name in enumerate(names):
        tree.attach(CRATE, to=f"l{k - 1}" if k else "base", joint=sd.revolute("z", name=name), name=f"l{k}")
    events = [sd.Lock(name, time=0.01 * (k + 1)) for k, name in enumerate(names[:3])] + [sd.Lock("$x_$", time=0.09)]
    figure = sd.simulate(tree, sd.State(tree), 0.1, events=events).plot("positions")
    figure.canvas.draw()
    (ax,) = figure.axes
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*(f"joint_with…the_left_hand_{k}" for k in range(3)), r"\$x_\$"]
    assert [text.get_text() for text in ax.texts] == [f"lock {label}" for label in labels[:3]] + [r"lock \$x_\$ →"]


def test_chosen_curves_alone_are_drawn_in_as_many_panels_as_they_need() -> None:
    tree = sd.KinematicTree()
    tree.attach(CRATE, to="base", joint=sd.spherical(name="hip"), name="hip")
    for k in range(10):
        tree.attach(CRATE, to=f"link{k - 1}" if k else "hip", joint=sd.revolute("z"), name=f"link{k}")
    run = sd.simulate(tree, sd.State(tree), 1e-3, step=5e-4)
    drawn = [[x.get_label() for x in ax.get_lines()] for ax in run.plot("positions", coordinates=run.coordinates).axes]
    assert list(map(len, drawn)) == [8, 5]
    assert drawn[0][:4] == ["hip[rx]", "hip[ry]", "hip[rz]", "link0"]
    for names, labels in {
        "link3": ["link3"],
        ("hip[wy]", "link1"): ["hip[wy]", "link1"],
        "hip": ["hip[wx]", "hip[wy]", "hip[wz]"],
        "hip[w]": ["hip[wx]", "hip[wy]", "hip[wz]"],
    }.items():
        (ax,) = run.plot("velocities", coordinates=names).axes
        assert [x.get_label() for x in ax.get_lines()] == labels


def test_the_largest_motions_and_torques_are_coloured() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k in range(12):
        tree.attach(CRATE, to="base", joint=sd.revolute("x"), name=f"link{k}")
    pushed = {"link2", "link5", "link11"}
    rates = [float(k not in (0, 1, 5, 7)) for k in range(12)]
    torque = {name: 1.0 for name in pushed}
    ax = sd.simulate(tree, sd.State(tree, qd=rates), 0.1, lambda t, s: torque, step=0.05).plot("torques").axes[0]
    coloured = {x.get_label() for x in ax.get_lines() if x.get_lw() > 1}
    assert len(coloured) == 8 and pushed < coloured and not coloured & {"link0", "link1", "link7"}


def test_noise_is_no_panel_unless_there_is_nothing_else() -> None:
    tree = arm()
    tree.attach(CRATE, to="base", joint=sd.prismatic("x", passive=True, name="idle"), name="idle")
    free = sd.simulate(tree, sd.State(tree, qd=[0.1, 0, 0]), 0.1, step=0.01)
    drawn = panels(free.plot())
    assert "torques of motors" not in drawn and "displacements of passive joints" not in drawn and "energy" in drawn
    assert list(panels(free.plot("torques"))) == ["torques of motors", "forces of motors"]
    assert list(panels(free.plot("torques", coordinates="upper"))) == ["torques of motors"]
    weightless = arm()
    weightless.gravity = (0, 0, 0)
    rest = sd.simulate(weightless, sd.State(weightless, [0.5, 0.1]), 0.1, step=0.01)
    assert list(panels(rest.plot())) == ["angles of driven joints", "displacements of driven joints"]


def test_limits_of_one_joint_are_not_drawn_for_the_curve_of_another() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name, limit in (("near", 1.05), ("far", 0.6)):
        joint = sd.revolute("z", limits=(-9, 9), velocity=limit)
        tree.attach(CRATE, to="base", joint=joint, name=name)
    run = sd.simulate(tree, sd.State(tree, qd=[1.0, 0.1]), 1.0, step=0.1)
    (ax,) = run.plot("velocities", degrees=False).axes
    assert [c.get_ydata()[0] for c in ax.get_lines() if c.get_label().startswith("limit")] == [1.05]


def test_noise_is_drawn_flat() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(CRATE, to="base", joint=sd.revolute("z"), name="mast")
    tree.attach(CRATE, to="mast", joint=sd.prismatic("x"), name="slide")
    rest = sd.simulate(tree, sd.State(tree, [1e-12, 1e-11], [3e-12, 0]), 1.0, step=0.1)
    moved = sd.simulate(tree, sd.State(tree, [1e-12, 1e-11], [3e-5, 0]), 1.0, step=0.1)
    for ax, least in zip(rest.plot(("positions", "velocities")).axes, (0.1, 1e-3, 0.1, 1e-3), strict=True):
        low, high = ax.get_ylim()
        assert low < -least < least < high
    # What is small but no noise is drawn at its own scale.
    assert np.diff(moved.plot("positions").axes[0].get_ylim())[0] < np.degrees(4e-5)


def test_a_start_far_from_zero_at_rest_is_drawn_at_its_position() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(CRATE, to="base", joint=sd.revolute("z"), name="mast")
    low, high = (
        sd.simulate(tree, sd.State(tree, [-1.2]), 1.0, step=0.1).plot("positions", degrees=False).axes[0].get_ylim()
    )
    assert -1.22 < low < -1.2 < high < -1.18


def test_limits_near_the_curves_are_drawn() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.revolute("z", limits=(-3.0, 1.05), velocity=1.2, effort=5.0)
    tree.attach(CRATE, to="base", joint=joint, name="mast")
    run = sd.simulate(tree, sd.State(tree, qd=[1.0]), 1.0, step=0.1)
    angle, rate, torque = run.plot(("positions", "velocities", "torques"), coordinates="mast").axes
    near = [c.get_ydata()[0] for c in angle.get_lines() if c.get_label() == "limit of mast"]
    assert near == [pytest.approx(np.degrees(1.05))] and angle.get_ylim()[1] > near[0]
    # The rate is constant, the torque zero: no limit is near.
    for ax in (rate, torque):
        assert not any(c.get_label().startswith("limit") for c in ax.get_lines())


def test_limits_of_weak_joints_do_not_crowd_a_panel_of_strong_ones() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name, most in (("strong", 100.0), ("weak", 10.0), ("used", 20.0)):
        tree.attach(CRATE, to="base", joint=sd.revolute("z", effort=most), name=name)
    run = sd.simulate(tree, sd.State(tree), 0.1, lambda t, state: np.array([90.0, 1.0, 17.0]), step=0.05)
    (ax,) = run.plot("torques").axes
    texts = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {text for text in texts if text.startswith("limit")} == {"limit of strong", "limit of used"}


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        ((1.0, 1.0, 1.1), {"limit of f0,\nf1", "limit of f2"}),
        ((1.0, 1.0, 1.0, 1.0), {"limit of 4 joints"}),
        (1 + 0.01 * np.arange(7), {"limits, in the colours of their joints"}),
    ],
)
def test_limits_say_whose_they_are(highest, labels) -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k, high in enumerate(highest):
        tree.attach(CRATE, to="base", joint=sd.revolute("z", limits=(-9, high)), name=f"f{k}")
    (ax,) = sd.simulate(tree, sd.State(tree, qd=np.ones(tree.nv)), 1.0, step=0.1).plot("positions").axes
    texts = [text.get_text() for text in ax.get_legend().get_texts() if text.get_text().startswith("limit")]
    assert len(texts) == len(labels) and set(texts) == labels


@pytest.mark.slow
def test_texts_of_events_do_not_overlap() -> None:
    tree = arm()
    times = {"first": 0.1, "second": 0.12, "third": 0.9}
    grasps = [sd.Grasp(CRATE, to="slide", name=name, twist="co_moving", time=t) for name, t in times.items()]
    figure = sd.simulate(tree, sd.State(tree), 1.0, None, grasps, step=0.05).plot()
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts]
        assert len(boxes) == 3
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
        assert all(ax.get_window_extent().x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_many_events_leave_room_for_the_curves() -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k in range(12):
        joint = sd.revolute("z", limits=(-1, 0.05 + 0.001 * k))
        tree.attach(CRATE, to="base", joint=joint, name=f"a_finger_with_a_name_{k}")
    run = sd.simulate(tree, sd.State(tree, qd=np.ones(12)), 0.1, step=0.01)
    (ax,) = run.plot("positions").axes
    assert len(run.events) == 12 and len(ax.texts) == 4
    assert ax.get_ylim()[1] < 1.7 * np.degrees(0.1)


def test_a_run_without_duration_or_joints_is_drawn() -> None:
    welded = sd.KinematicTree()
    welded.attach(CRATE, to="base", name="block")
    run = sd.simulate(welded, sd.State(welded), 0.1, step=0.05)
    assert [ax.get_title(loc="left") for ax in run.plot().axes] == ["energy"]
    assert "keeps its energy" in run.explain()


@pytest.mark.slow
def test_a_run_is_drawn_into_given_axes(run: sd.Run) -> None:
    figure = figures.blank_figure(6, 4)
    upper, lower = figure.subplots(2, 1)
    assert run.plot("positions", coordinates="upper", degrees=False, ax=upper) is figure
    run.plot("energy", ax=[lower])
    np.testing.assert_array_equal(upper.get_lines()[0].get_ydata(), run["upper"])
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("angle (rad)", "energy (J)")
    with pytest.raises(
        sd.ScrewdynError, match=r"one Axes for each panel, here 3 \(angles of driven joints; disp.*got 1"
    ):
        run.plot("positions", ax=upper)
    with pytest.raises(sd.ScrewdynError, match=r"one Axes for each panel, here 1 \(energy\); got 3"):
        run.plot("energy", ax=3)
    four = figures.blank_figure(6, 4).subplots(2, 2)
    run.plot(("positions", "energy"), ax=four)
    assert four[1, 1].get_ylabel() == "energy (J)"


def test_what_cannot_be_drawn_is_refused(run: sd.Run) -> None:
    for what in ("speed", [], 3, ["energy", "speed"]):
        with pytest.raises(sd.ScrewdynError, match="what must be one or more of 'positions', 'velocities'"):
            run.plot(what)
    with pytest.raises(sd.UnknownNameError, match=r"'uper'.*'upper'"):
        run.plot(coordinates="uper")
    for names in ([], 3):
        with pytest.raises(sd.ScrewdynError, match="coordinates must be a name or a sequence of names"):
            run.plot(coordinates=names)
    with pytest.raises(sd.ScrewdynError, match="none of the coordinates has torques"):
        run.plot("torques", coordinates="swing")


def test_a_notebook_shows_the_image(run: sd.Run) -> None:
    image, size = run.plot("energy")._repr_png_()
    assert image.startswith(b"\x89PNG")
    pixels = [int.from_bytes(image[k : k + 4], "big") for k in (16, 20)]
    assert pixels == [2 * size["width"], 2 * size["height"]]


def test_a_picture_needs_a_known_ending_and_a_folder(tmp_path: Path) -> None:
    assert figures.writable(tmp_path / "a.PNG") == tmp_path / "a.PNG"
    with pytest.raises(sd.ScrewdynError, match=r"arm\.urdf'.*end in .*\.png"):
        figures.writable(tmp_path / "arm.urdf")
    with pytest.raises(sd.ScrewdynError, match="end in"):
        figures.writable(tmp_path / "figure")
    with pytest.raises(sd.ScrewdynError, match="there is no folder"):
        figures.writable(tmp_path / "nowhere" / "a.png")


@pytest.mark.slow
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
        "try:\n    import screwdyn.views.figures\nexcept screwdyn.ScrewdynError as error:\n    print(error)\n"
    )
    assert "pip install 'screwdyn[plot]'" in out


@pytest.mark.slow
def test_drawing_leaves_pyplot_and_importing_leaves_matplotlib_alone() -> None:
    out = python(
        "import sys, screwdyn\n"
        "print('matplotlib' in sys.modules)\n"
        "import screwdyn.views.figures\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    assert out.split() == ["False", "False"]
