"""Scenarios: simulations that a TOML file describes, and the problems of such files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import ScenarioError
from screwdyn.cli.main import main
from screwdyn.cli.scenario import FIGURES, read_scenario, run_scenario

EXAMPLE = Path(__file__).parents[2] / "examples" / "carry_a_crate.toml"
ARM = Path(__file__).parents[1] / "data" / "urdf" / "arm.urdf"


def scenario(tmp_path, text, name="scenario.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(tmp_path, text):
    with pytest.raises(ScenarioError) as caught:
        read_scenario(scenario(tmp_path, text))
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.slow
def test_the_example_runs(tmp_path, capsys):
    assert main(["simulate", str(EXAMPLE), "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert [line for line in err.splitlines() if "compiling" not in line] == []
    for words in ("lasts 2 s, ", "0.6 s: grasp crate", "lock wrist_3_joint", "1.4 s: release crate"):
        assert words in out
    run = sd.simulation.recording.Recording.from_npz(tmp_path / "carry_a_crate.npz")
    assert run["shoulder_pan_joint"][-1] == pytest.approx(0.8, abs=1e-3)
    assert np.isfinite(run["hook[angle1]"]).sum() > 50
    assert (tmp_path / "carry_a_crate.csv").read_text(encoding="utf-8").startswith("t")
    assert (tmp_path / "carry_a_crate.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_scenario_is_the_same_as_calls(tmp_path):
    path = scenario(
        tmp_path,
        """
        robot = "two_link"
        duration = 0.5
        step = 0.02
        gravity = [0, -9.81, 0]
        [start.position]
        theta1 = 0.3
        [start.velocity]
        theta2 = 1
        [controller]
        type = "constant"
        torque = { theta1 = 2.5 }
        [[schedule]]
        event = "release"
        time = 0.3
        what = "bob"
        [[schedule]]
        event = "grasp"
        time = 0.1
        body = { mass = 0.5 }
        to = "link2"
        name = "bob"
        twist = [0, 0, 0, 0, 0, 0.1]
        joint = { type = "revolute", axis = [0, 0, 1], point = [0, 0.1, 0], passive = true }
        at = [1, 0, 0]
        """,
    )
    read = read_scenario(path)
    tree = sd.robots.two_link()
    tree.gravity = (0, -9.81, 0)
    swing = sd.revolute("z", (0, 0.1, 0), passive=True)
    bob = sd.Grasp(
        sd.Inertia(0.5), to="link2", name="bob", twist=[0, 0, 0, 0, 0, 0.1], joint=swing, at=(1, 0, 0), time=0.1
    )
    start = sd.State(tree, {"theta1": 0.3}, {"theta2": 1.0})
    run = sd.simulate(tree, start, 0.5, lambda t, s: {"theta1": 2.5}, [bob, sd.Release("bob", time=0.3)], step=0.02)
    again = sd.simulate(read.robot.copy(), read.start, read.duration, read.torque, read.events, **read.options)
    assert [type(event).__name__ for event in read.events] == ["Grasp", "Release"]
    assert_allclose(again.states[-1].q, run.states[-1].q, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_controller_without_gains_holds_the_arm_up_also_with_a_payload(tmp_path):
    path = scenario(
        tmp_path,
        """
        robot = "ur5"
        duration = 0.3
        [start.position]
        shoulder_lift_joint = -1.0
        [controller]
        type = "pd"
        [[schedule]]
        event = "grasp"
        time = 0.1
        body = { mass = 3.0, sphere = 0.1, com = [0, 0.1, 0.2] }
        to = "tool0"
        name = "ball"
        twist = "co_moving"
        """,
    )
    read = read_scenario(path)
    run = sd.simulate(read.robot.copy(), read.start, read.duration, read.torque, read.events, step=0.02)
    assert run["shoulder_lift_joint"][-1] == pytest.approx(-1.0, abs=1e-9)
    assert run.tree.shapes("ball") == (sd.Shape.sphere(0.1, pose=(0, 0.1, 0.2)),)


def test_a_floating_robot_from_a_file_beside_the_scenario(tmp_path):
    (tmp_path / "arm.urdf").write_bytes(ARM.read_bytes())
    text = 'robot = "arm.urdf"\nduration = 0.01\nfloating_base = true\n[start.position]\nbase = [0, 0, 1, 0, 0, 0, 2]\n'
    read = read_scenario(scenario(tmp_path, text))
    assert read.start["base[pz]"] == 2
    assert read.start["base[z]"] == 1


def test_a_hand_over_and_locks(tmp_path):
    text = """
        robot = "two_link"
        duration = 1
        [[schedule]]
        event = "grasp"
        time = 0.1
        body = { mass = 1, cylinder = [0.1, 0.2] }
        to = "link2"
        name = "bar"
        twist = "co_moving"
        [[schedule]]
        event = "lock"
        time = 0.2
        joint = "theta2"
        [[schedule]]
        event = "hand_over"
        time = 0.3
        what = "bar"
        to = "link1"
        [[schedule]]
        event = "unlock"
        time = 0.4
        joint = "theta2"
        """
    read = read_scenario(scenario(tmp_path, text))
    tree = read.robot.copy()
    run = sd.simulate(tree, read.start, 0.5, events=read.events)
    assert [happened.verb for happened in run.events] == ["grasp", "lock", "hand over", "unlock"]
    assert tree.parent("bar") == "link1"
    assert tree.shapes("bar") == (sd.Shape.cylinder(0.1, 0.2),)


START = 'robot = "two_link"\nduration = 1\n'
GRASP = """
[[schedule]]
event = "grasp"
time = 0.1
body = {mass = 1}
to = "link2"
name = "bar"
twist = "co_moving"
"""
WHEN = GRASP.replace("time = 0.1", "when = {{{}}}").replace("{mass = 1}", "{{mass = 1}}")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "", "the key 'robot' is missing"),
        ('robot = "two_link"', "", "the key 'duration' is missing"),
        ('robot = "twolink"\nduration = 1', "robot", "did you mean 'two_link'?"),
        ("robot = 3\nduration = 1", "robot", "or one of andrews, panda, pelican, "),
        ('robot = "missing.urdf"\nduration = 1', "robot", "cannot read the file"),
        ('robot = "two_link"\nduration = 0', "duration", "a number of seconds > 0; got 0"),
        ('robot = "two_link"\nduration = nan', "duration", "nan is not a finite number"),
        ('robot = "two_link"\nduration = 2020-01-01', "duration", "a number of seconds > 0; got 2020-01-01"),
        (START + "durations = 1", "durations", "did you mean 'duration'?"),
        (START + "gravity = [0, 0]", "gravity", "a list of 3 numbers"),
        (START + "floating_base = true", "floating_base", "this is for URDF files"),
        (START + "control_period = 0.1", "control_period", "there is no controller"),
        (START + "[start.position]\ntheta3 = 1", "start.position.theta3", "did you mean 'theta2' or 'theta1'?"),
        (START + "[start.position]\ntheta1 = 'x'", "start.position.theta1", "expected a number; got 'x'"),
        (START + "[start]\npositions = {}", "start.positions", "did you mean 'position'?"),
        (START + "start = 3", "start", "expected the keys position, velocity; got 3"),
        (START + "[controller]", "controller", "the key 'type' is missing"),
        (START + "[controller]\ntype = 'pid'", "controller.type", "one of 'none', 'constant', 'pd'; got 'pid'"),
        (START + "[controller]\ntype = 'pd'\nkp = 3", "controller.kp", "known: type, target, stiffness, damping"),
        (START + "[controller]\ntype = 'pd'\nstiffness = -3", "controller.stiffness", "must not be negative; got -3"),
        (START + "[controller]\ntype = 'pd'\nstiffness = {a = 3}", "controller.stiffness.a", "known: theta1, theta2"),
        (START + "[controller]\ntype = 'pd'\ntarget = {a = 3}", "controller.target.a", "no such coordinate"),
        (START + "[controller]\ntype = 'constant'\ntorque = {a = 3}", "controller.torque.a", "no such coordinate"),
        (START + "schedule = 3", "schedule", "a list of events, [[schedule]]; got 3"),
        (START + "schedule = [3]", "schedule[0]", "got 3"),
        (START + "[[schedule]]\nevent = 'drop'", "schedule[0].event", "one of 'grasp', 'release', "),
        (START + "[[schedule]]\nevent = 'release'\ntime = 2", "schedule[0].time", "the run lasts from 0 to 1 s; got 2"),
        ("robot = 'ur5'\n[[schedule]]\nevent = 'release'\ntime = -1", "schedule[0].time", "from 0 to … s; got -1"),
        (START + "[[schedule]]\nevent = 'release'\ntime = 0", "schedule[0]", "the key 'what' is missing"),
        (START + "[[schedule]]\nevent = 'release'\ntime = 0\nwhat = 'link3'", "schedule[0].what", "at that time"),
        (START + "[[schedule]]\nevent = 'release'\ntime = 0\nwhat = 'base'", "schedule[0]", "cannot be detached"),
        (
            START + "[[schedule]]\nevent = 'lock'\ntime = 0\njoint = 'link2'",
            "schedule[0].joint",
            "known: theta1, theta2",
        ),
        (START + "[[schedule]]\nevent = 'unlock'\ntime = 0\njoint = 'theta2'", "schedule[0]", "not locked"),
        (START + GRASP.replace("link2", "link9"), "schedule[0].to", "there is no link 'link9' at that time"),
        (START + GRASP.replace("bar", "link1"), "schedule[0]", "there is a link 'link1' already"),
        (START + GRASP.replace("co_moving", "comoving"), "schedule[0].twist", "'at_rest', 'co_moving'"),
        (START + GRASP.replace("mass = 1", "mas = 1"), "schedule[0].body.mas", "did you mean 'mass'?"),
        (START + GRASP.replace("mass = 1", "mass = -1"), "schedule[0].body", "is not positive"),
        (START + GRASP.replace("= 1}", "= 1, box = [1, 1]}"), "schedule[0].body.box", "a list of 3 numbers"),
        (START + GRASP.replace("= 1}", "= 1, box = [1, 1, 1], sphere = 1}"), "schedule[0].body", "box and sphere"),
        (START + GRASP + "at = [[1, 2], [3, 4]]", "schedule[0].at", "4 rows of 4 numbers"),
        (START + GRASP + "joint = {axis = 'x'}", "schedule[0].joint", "the key 'type' is missing"),
        (START + GRASP + "joint = {type = 'hinge'}", "schedule[0].joint.type", "'revolute', 'prismatic'"),
        (START + GRASP + "joint = {type = 'helical', axis = 'x'}", "schedule[0].joint", "the key 'pitch' is missing"),
        (START + GRASP + "joint = {type = 'free', axis = 'x'}", "schedule[0].joint.axis", "unknown key"),
        (START + GRASP + "joint = {type = 'revolute', axis = 'w'}", "schedule[0].joint.axis", "'x', 'y', 'z'"),
        (START + GRASP + "joint = {type = 'revolute', axis = [0, 0, 0]}", "schedule[0].joint", "axis"),
        (START + "saturate = 3", "saturate", "expected true or false; got 3"),
        (START + "saturate = true", "saturate", "there is no controller whose torques can be clipped"),
        (START + "stops = 3", "stops", "'inelastic', the numbers of a spring, "),
        (START + "stops = {stiffness = -1}", "stops", "must be a finite number > 0; got -1"),
        (START + "stops = {stiffness = 1, damp = 1}", "stops.damp", "did you mean 'damping'?"),
        (START + "stops.theta3 = {stiffness = 1}", "stops.theta3", "there is no such joint; did you mean"),
        (START + "stops.theta1 = {stiffness = 1}", "stops.theta1", "the joint has no limits"),
        (START + "stops.theta1 = {damping = 1}", "stops.theta1", "the key 'stiffness' is missing"),
        (START + GRASP.replace("time = 0.1\n", ""), "schedule[0]", "either a time or a condition"),
        (START + GRASP + "when = {z = 'link2', above = 0}", "schedule[0]", "either a time or a condition"),
        (START + WHEN.format("z = 'link9', above = 0"), "schedule[0].when.z", "there is no link 'link9' at that time"),
        (START + WHEN.format("velocity = 'a', above = 0"), "schedule[0].when.velocity", "there is no coordinate 'a'"),
        (START + WHEN.format("above = 0"), "schedule[0].when", "expected one number, of position, velocity, x, y, z"),
        (START + WHEN.format("x = 'link2', above = 0, below = 1"), "schedule[0].when", "got above and below"),
        (START + WHEN.format("x = 'link2', over = 0"), "schedule[0].when.over", "unknown key"),
        (START + WHEN.format("x = 'link2', above = 'a'"), "schedule[0].when.above", "expected a number; got 'a'"),
        (START + WHEN.format("x = 'link2', above = 0, after = 'a'"), "schedule[0].when.after", "a number of seconds"),
        (START + GRASP.replace("time = 0.1", "when = 3"), "schedule[0].when", "expected the keys position, velocity"),
        (START + GRASP.replace("{mass = 1}", "'no.urdf'"), "schedule[0].body", "cannot read the file"),
        (START + GRASP.replace("{mass = 1}", "'ur55'"), "schedule[0].body", "did you mean 'ur5'?"),
        (START + "[output]\npng = 'a'", "output.png", "known: csv, npz, figure, film"),
        (START + "[output]\ncsv = 3", "output.csv", "the name of a file; got 3"),
        ("robot = ", "", "not valid TOML: Invalid value (at end of document)"),
        ("a = 1\na = 2", "", "not valid TOML: Cannot overwrite a value"),
        ("a = " + "[" * 100_000, "", "nested too deeply"),
        ("a = " + "9" * 5000, "", "not valid TOML"),
    ],
)
def test_a_problem_is_reported_with_the_keys_that_lead_to_it(tmp_path, text, place, words):
    found = problems(tmp_path, text)
    assert any(problem.startswith(f"{place}: " if place else "") and words in problem for problem in found), found


def test_a_mistake_is_reported_once(tmp_path):
    release = "[[schedule]]\nevent = 'release'\ntime = 0.2\nwhat = 'bar'\n"
    assert problems(tmp_path, START + GRASP.replace("mass = 1", "mass = -1") + release) == [
        "schedule[0].body: no rigid body has this inertia: mass -1 kg is not positive"
    ]
    assert problems(tmp_path, START + GRASP + "joint = {typ = 'revolute', axis = 'x'}\n" + release) == [
        "schedule[0].joint: the key 'type' is missing; write it instead of 'typ'"
    ]
    assert problems(tmp_path, START + GRASP.replace("event", "evnt")) == [
        "schedule[0]: the key 'event' is missing; write it instead of 'evnt'"
    ]
    assert problems(tmp_path, START + "[controller]\nstiffness = 3") == ["controller: the key 'type' is missing"]


def test_all_problems_are_listed_together(tmp_path):
    text = 'robot = "two_link"\nduration = -1\nx = 1\n[controller]\ntype = "p"\n[start.position]\na = 1\n'
    assert len(problems(tmp_path, text)) == 4


def test_files_that_cannot_be_read(tmp_path, capsys):
    for path, words in ((tmp_path / "missing.toml", "No such file"), (tmp_path, "Is a directory")):
        assert main(["simulate", str(path)]) == 2
        assert words in capsys.readouterr().err
    path = tmp_path / "latin.toml"
    path.write_bytes(b"a = '\xff'")
    assert main(["simulate", str(path)]) == 2
    assert "not valid TOML" in capsys.readouterr().err


def test_outputs_that_cannot_be_written(tmp_path, capsys):
    path = scenario(tmp_path, START.replace("1", "0.01") + '[output]\ncsv = "scenario.toml/a.csv"\n')
    assert main(["simulate", str(path), "--output", str(tmp_path)]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


def test_folders_of_outputs_are_made(tmp_path):
    path = scenario(tmp_path, START.replace("1", "0.01") + '[output]\ncsv = "tables/a.csv"\n')
    assert main(["simulate", str(path), "--output", str(tmp_path / "new" / "folder")]) == 0
    assert (tmp_path / "new" / "folder" / "tables" / "a.csv").exists()


def test_names_of_outputs_are_checked_before_the_simulation(tmp_path):
    outputs = '[output]\ncsv = ".csv"\nnpz = "a"\nfigure = "a.doc"\nfilm = "a.avi"\n'
    assert problems(tmp_path, START + outputs) == [
        "output.csv: the name must end in .csv; got '.csv'",
        "output.npz: the name must end in .npz; got 'a'",
        "output.figure: the name must end in .png, .svg, .pdf, .eps, .ps, .jpg, .jpeg, .tif, .tiff, .webp; got 'a.doc'",
        "output.film: the name must end in .html, .gif, .mp4; got 'a.avi'",
    ]


def test_outputs_stay_in_their_folder(tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "link.csv").symlink_to(tmp_path / "target.csv")
    for name in ("../a.csv", str(tmp_path / "a.csv"), "elsewhere/a.csv", "link.csv", "b/../../a.csv"):
        path = scenario(tmp_path, START.replace("1", "0.01") + f"[output]\ncsv = '{name}'\n")
        assert main(["simulate", str(path), "--output", str(folder), "--overwrite"]) == 2
        assert f"the output '{name}' is outside the folder" in capsys.readouterr().err
    assert not [*tmp_path.glob("*.csv")]
    path = scenario(tmp_path, START.replace("1", "0.01") + "[output]\ncsv = 'k.csv'\nnpz = 'k.csv/k.npz'\n")
    assert main(["simulate", str(path), "--output", str(folder)]) == 2
    assert "would also be the folder of" in capsys.readouterr().err
    assert not (folder / "k.csv").exists()


@pytest.mark.slow
def test_a_scenario_replaces_its_own_outputs_only(tmp_path, capsys):
    names = {"csv": "a.csv", "npz": "a.npz", "figure": "a.png", "film": "a.gif"}
    outputs = "[output]\n" + "".join(f"{what} = '{name}'\n" for what, name in names.items())
    path = scenario(tmp_path, START.replace("1", "0.01") + "step = 0.001\n" + outputs)
    command = ["simulate", str(path), "--output", str(tmp_path)]
    for name in names.values():
        (tmp_path / name).write_bytes(b"precious")
        assert main(command) == 2
        assert f"{name}' exists, and is not what a scenario wrote there" in capsys.readouterr().err
        assert (tmp_path / name).read_bytes() == b"precious"
        (tmp_path / name).unlink()
    assert main(command) == main(command) == 0
    with (tmp_path / "a.csv").open("a") as file:
        file.write("a note\n")
    assert main(command) == 2
    assert main([*command, "--overwrite"]) == main(command) == 0
    assert "a note" not in (tmp_path / "a.csv").read_text(encoding="utf-8")


def test_a_scenario_has_a_film_and_says_before_the_simulation_what_it_lacks(tmp_path, monkeypatch, capsys):
    path = scenario(tmp_path, START.replace("1", "0.1") + '[output]\nfilm = "a.gif"\n')
    assert main(["simulate", str(path), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF89a")
    path = scenario(tmp_path, START.replace("1", "1e6") + '[output]\nfilm = "a.mp4"\n')
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["simulate", str(path), "--output", str(tmp_path)]) == 2
    assert "an MP4 needs ffmpeg" in capsys.readouterr().err


@pytest.mark.soak
def test_every_format_of_figures_is_written(tmp_path):
    for suffix in FIGURES:
        path = scenario(tmp_path, START.replace("1", "0.01") + f'[output]\nfigure = "a{suffix}"\n')
        assert main(["simulate", str(path), "--output", str(tmp_path)]) == 0
        assert (tmp_path / f"a{suffix}").stat().st_size > 1000


def test_the_method_of_integration(tmp_path, monkeypatch):
    text = START.replace("1", "0.01") + "method = 'Radau'\n"
    path = scenario(tmp_path, text)
    used = []
    monkeypatch.setattr(
        "screwdyn.cli.scenario.simulate", lambda *a, **k: used.append(k.get("method")) or sd.simulate(*a, **k)
    )
    assert main(["simulate", str(path)]) == 0
    assert used == ["Radau"]
    assert problems(tmp_path, text.replace("Radau", "Euler"))[0].startswith("method: expected one of 'RK23', ")


def test_a_failing_event_is_reported_with_its_time(tmp_path, capsys):
    """The schedule is possible, but the payload is a point on a pin through itself."""
    path = scenario(
        tmp_path,
        """
        robot = "two_link"
        duration = 0.1
        [[schedule]]
        event = "grasp"
        time = 0.05
        body = { mass = 1 }
        to = "link2"
        name = "ball"
        twist = "at_rest"
        joint = { type = "revolute" }
        """,
    )
    assert main(["simulate", str(path)]) == 2
    assert capsys.readouterr().err.startswith("screwdyn: the run cannot have the Grasp at t = 0.05 s: ")


def test_stops_at_joint_limits(tmp_path, capsys):
    """The joint "push" of the arm in the file has limits."""
    limit = sd.KinematicTree.from_urdf(ARM).joint("push").limits[1]
    text = f"robot = '{ARM.as_posix()}'\nduration = 0.5\ngravity = [0, 0, 0]\nstops = 'inelastic'\n"
    path = scenario(tmp_path, text + f"[start.position]\npush = {limit - 0.1}\n[start.velocity]\npush = 2\n")
    assert read_scenario(path).options["stops"] == "inelastic"
    assert main(["simulate", str(path), "--output", str(tmp_path)]) == 0
    assert ": reach limit of " in capsys.readouterr().out
    assert problems(tmp_path, text.replace("'inelastic'", "'soft'")) == [
        "stops: expected 'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints; "
        "got 'soft'",
    ]


LOOP = """
[[schedule]]
event = "close"
time = 0.2
link = "link2"
to = "base"
joint = {type = "spherical"}
name = "pin"
"""


def test_loops(tmp_path):
    """A pin without freedom for two links stops the arm, which then falls freely again."""
    text = START + LOOP + '[[schedule]]\nevent = "open"\ntime = 0.4\nloop = "pin"\n'
    read = read_scenario(scenario(tmp_path, text))
    tree = read.robot.copy()
    run = sd.simulate(tree, read.start, 0.5, events=read.events)
    assert [(h.verb, h.subject) for h in run.events] == [("close", "pin"), ("open", "pin")]
    held = (run.t > 0.2) & (run.t < 0.4)
    assert np.ptp(run.pose("link2")[held, :3, 3], axis=0) == pytest.approx(0, abs=1e-9)
    assert run.qd[-1].any()
    assert problems(tmp_path, text.replace('to = "base"', 'to = "bas"')) == [
        "schedule[0].to: there is no link 'bas' at that time; did you mean 'base'?"
    ]
    assert problems(tmp_path, text.replace('loop = "pin"', 'loop = "pn"')) == [
        "schedule[1].loop: there is no loop 'pn' at that time; did you mean 'pin'?"
    ]
    assert problems(tmp_path, text.replace("spherical", "universal")) != []


def test_a_floating_robot_is_welded_and_carried_by_another_link(tmp_path):
    tree = sd.KinematicTree("ground")
    tree.attach(sd.robots.two_link(), "ground", sd.free(name="float", passive=True), name="tail")
    tree.set_inertia("tail", sd.Inertia.box(1, (0.2, 0.3, 0.1)))
    (tmp_path / "worm.json").write_text(tree.to_json(), encoding="utf-8")
    text = "robot = 'worm.json'\nduration = 0.4\nstart.velocity.theta2 = 1.0\n"
    for k, entries in enumerate(
        (
            "event = 'weld'\nlink = 'link1'\nto = 'link2'",
            "event = 'reroot'\nlink = 'link2'",
            "event = 'unweld'\nlink = 'link2'\nto = 'link1'",
        )
    ):
        text += f"[[schedule]]\ntime = 0.{k + 1}\n{entries}\n"
    read = read_scenario(scenario(tmp_path, text))
    found = read.robot.copy()
    run = sd.simulate(found, read.start, read.duration, events=read.events)
    events = [
        sd.Weld("link1", "link2", time=0.1),
        sd.Reroot("link2", time=0.2),
        sd.Unweld("link2", "link1", time=0.3),
    ]
    expected = sd.simulate(tree, sd.State(tree, qd={"theta2": 1.0}), 0.4, events=events)
    assert found.path("tail") == ("ground", "link2", "link1", "tail")
    np.testing.assert_array_equal(run.states[-1].qd, expected.states[-1].qd)
    for wrong, place in (("'link2'\nto = 'link1'", "not welded"), ("'lnk2'\nto = 'link1'", "did you mean 'link2'")):
        (problem,) = problems(tmp_path, START + "[[schedule]]\ntime = 0\nevent = 'unweld'\nlink = " + wrong)
        assert problem.startswith("schedule[0]")
        assert place in problem
    (problem,) = problems(tmp_path, START + "[[schedule]]\ntime = 0\nevent = 'reroot'\nlink = 'link2'")
    assert "is not beyond a free joint" in problem


def test_a_payload_that_a_loop_holds_is_released(tmp_path):
    """It hangs on the loop then, whose joint has its name."""
    later = """
        [[schedule]]
        event = "release"
        time = 0.3
        what = "bar"
        [[schedule]]
        event = "lock"
        time = 0.4
        joint = "pin"
        """
    grasp = GRASP.replace("= 1}", "= 1, box = [0.1, 0.2, 0.3]}") + 'joint = {type = "spherical"}'
    text = START + grasp + LOOP.replace('"link2"', '"bar"') + later
    read = read_scenario(scenario(tmp_path, text))
    tree = read.robot.copy()
    run = sd.simulate(tree, read.start, 0.5, events=read.events)
    assert [happened.verb for happened in run.events] == ["grasp", "close", "release", "lock"]
    assert run.events[2].event.loop == "pin"
    assert tree.parent("bar") == "base"


def test_events_that_lack_keys_are_read_too(tmp_path):
    text = """
        [[schedule]]
        event = "grasp"
        to = "link9"
        name = "bar"
        body = { mass = -1 }
        [[schedule]]
        event = "hand_over"
        time = 3
        to = "link9"
        [[schedule]]
        event = "lock"
        time = "soon"
        joint = "theta9"
        """
    found = [problem.split("; ")[0] for problem in problems(tmp_path, START + text)]
    assert found == [
        "schedule[0]: an event has either a time or a condition",
        "schedule[0]: the key 'twist' is missing",
        "schedule[0].to: there is no link 'link9' at that time",
        "schedule[0].body: no rigid body has this inertia: mass -1 kg is not positive",
        "schedule[1]: the key 'what' is missing",
        "schedule[1].time: the run lasts from 0 to 1 s",
        "schedule[1].to: there is no link 'link9' at that time",
        "schedule[2].time: expected a number of seconds",
        "schedule[2].joint: there is no joint 'theta9' at that time",
    ]


def test_joints_of_events_may_have_rotors(tmp_path):
    rotor = "{inertia = 1e-4, ratio = 3, axis = 'y', mass = 0.1, across = 1e-4, com = [0, 0, 0.1], carrier = 'link1'}"
    text = START + GRASP + "joint = {type = 'revolute', axis = [1, 0, 0], rotor = " + rotor + "}"
    (event,) = read_scenario(scenario(tmp_path, text)).events
    found = event.joint.rotor
    expected = sd.Rotor(1e-4, 3, "y", (0, 0, 0.1), 0.1, 1e-4, "link1")
    assert (found.ratio, found.carrier) == (3, "link1")
    np.testing.assert_array_equal(found.screw, expected.screw)
    np.testing.assert_array_equal(found.bodies[0].matrix, expected.bodies[0].matrix)
    assert problems(tmp_path, text.replace("1e-4, ratio = 3", "-1")) == [
        "schedule[0].joint.rotor: the key 'ratio' is missing"
    ]
    assert problems(tmp_path, text.replace("rotor = " + rotor, "mimic = {joint = 'theta1', ratio = 2}")) == [
        "schedule[0].joint: an event cannot bring a joint that follows another one; leave out 'mimic'"
    ]


@pytest.mark.slow
def test_a_controller_of_joints_that_the_schedule_brings(tmp_path):
    hinge = "joint = {type = 'revolute', axis = 'z', name = 'hinge'}"
    body = GRASP.replace("= 1}", "= 1, box = [0.3, 0.2, 0.1]}")
    control = "[controller]\ntype = 'pd'\ntarget.hinge = 0.2\nstiffness.hinge = 40\ndamping.hinge = 4\n"
    read = read_scenario(scenario(tmp_path, START + control + body + hinge))
    run = sd.simulate(read.robot, read.start, 1.0, read.torque, read.events, step=0.02)
    tau = 40 * (0.2 - run["hinge"]) - 4 * run.qd[:, run.coordinates.index("hinge")]
    late = np.isfinite(run["hinge"])
    assert late.any()
    np.testing.assert_allclose(run.tau[late, run.coordinates.index("hinge")], tau[late], atol=1e-9)
    assert problems(tmp_path, START + control.replace("target.hinge", "target.hing") + body + hinge) == [
        "controller.target.hing: there is no such coordinate; did you mean 'hinge'?"
    ]
    assert problems(tmp_path, START + control.replace("stiffness.hinge", "stiffness") + body + hinge) == [
        "controller.target: joint 'hinge' has no stiffness; give stiffness as a table that names it"
    ]


def test_stops_of_joints_that_the_schedule_brings(tmp_path):
    hinge = "joint = {type = 'revolute', axis = 'z', name = 'hinge', limits = [-0.1, 0.1]}"
    text = START + "stops.hinge = 'inelastic'\n" + GRASP + hinge
    assert read_scenario(scenario(tmp_path, text)).options["stops"] == {"hinge": "inelastic"}
    assert problems(tmp_path, text.replace("stops.hinge", "stops.hing")) == [
        "stops.hing: there is no such joint; did you mean 'hinge'?"
    ]


@pytest.mark.slow
def test_springs_at_joint_limits(tmp_path):
    joint = sd.KinematicTree.from_urdf(ARM).joint("push")
    start = f"[start.position]\npush = {joint.limits[1] - 0.1}\n[start.velocity]\npush = 2\n"
    text = f"robot = '{ARM.as_posix()}'\nduration = 0.5\ngravity = [0, 0, 0]\n"
    every = read_scenario(scenario(tmp_path, text + "stops = {stiffness = 800, damping = 3}\n" + start))
    assert every.options["stops"] == sd.SpringStop(800, 3)
    single = text + "stops.push = {stiffness = 800}\n" + start
    read = read_scenario(scenario(tmp_path, single))
    assert read.options["stops"] == {"push": sd.SpringStop(800)}
    assert read_scenario(scenario(tmp_path, single.replace("{stiffness = 800}", "'inelastic'"))).options["stops"] == {
        "push": "inelastic"
    }
    run = sd.simulate(read.robot.copy(), read.start, read.duration, **read.options, step=0.02)
    free = sd.simulate(read.robot.copy(), read.start, read.duration, step=0.02)
    assert run["push"][-1] < joint.limits[1] < free["push"][-1]


def test_a_payload_flies_and_is_grasped_again_and_joints_and_inertias_change(tmp_path):
    text = """
        [[schedule]]
        event = "release"
        time = 0.2
        what = "bar"
        into_world = true
        [[schedule]]
        event = "hand_over"
        time = 0.4
        what = "bar"
        to = "link1"
        [[schedule]]
        event = "replace_joint"
        time = 0.6
        link = "link2"
        joint = { type = "fixed" }
        [[schedule]]
        event = "set_inertia"
        time = 0.7
        link = "link2"
        inertia = { mass = 2, sphere = 0.1 }
        """
    read = read_scenario(scenario(tmp_path, START + GRASP.replace("= 1}", "= 1, sphere = 0.2}") + text))
    found = read.robot.copy()
    run = sd.simulate(found, read.start, read.duration, events=read.events)
    tree = sd.robots.two_link()
    events = [
        sd.Grasp(sd.Inertia.sphere(1.0, 0.2), to="link2", twist="co_moving", name="bar", time=0.1),
        sd.Release("bar", into_world=True, time=0.2),
        sd.HandOver("bar", "link1", time=0.4),
        sd.ReplaceJoint("link2", sd.fixed(), time=0.6),
        sd.SetInertia("link2", sd.Inertia.sphere(2.0, 0.1), time=0.7),
    ]
    expected = sd.simulate(tree, sd.State(tree), 1.0, events=events)
    assert [happened.verb for happened in run.events] == [happened.verb for happened in expected.events]
    assert np.isfinite(run["bar[pz]"]).any()
    np.testing.assert_array_equal(run.q, expected.q)
    assert found.mass == tree.mass
    assert found.parent("bar") == "link1"
    for wrong, place in (('"link9"', "link: there is no link 'link9'"), ('"base"', ": ")):
        bad = "[[schedule]]\nevent = 'replace_joint'\ntime = 0\njoint = {type = 'fixed'}\nlink = " + wrong
        assert any(
            problem.startswith("schedule[0]") and place in problem for problem in problems(tmp_path, START + bad)
        )


def test_events_on_conditions(tmp_path):
    """A point mass falls: it passes z = -1 at sqrt(2 / g); what it drops then is followed by a second condition."""
    drop = sd.KinematicTree()
    drop.attach(sd.Inertia.point(2.0), "base", sd.prismatic("z", passive=True, name="fall"), name="stone")
    (tmp_path / "drop.json").write_text(drop.to_json(), encoding="utf-8")
    text = """
        robot = "drop.json"
        duration = 1
        [[schedule]]
        event = "grasp"
        when = {z = "stone", below = -1}
        body = {mass = 2}
        to = "stone"
        name = "pebble"
        twist = "at_rest"
        [[schedule]]
        event = "release"
        when = {velocity = "fall", below = -3, after = 0.46}
        what = "pebble"
        """
    read = read_scenario(scenario(tmp_path, text))
    run = sd.simulate(read.robot.copy(), read.start, read.duration, events=read.events)
    first, second = run.events
    met = np.sqrt(2 / 9.81)
    assert_allclose(first.t, met, rtol=1e-9)
    # The pebble halves the speed.
    assert_allclose(second.t, met + (3 - 9.81 * met / 2) / 9.81, rtol=1e-9)
    assert (first.verb, second.verb) == ("grasp", "release")
    late = text.replace("below = -1}", "below = -1, after = 0.6}").replace("after = 0.46", "after = 0.7")
    read = read_scenario(scenario(tmp_path, late))
    run = sd.simulate(read.robot.copy(), read.start, read.duration, events=read.events)
    assert_allclose(run.events[0].t, 0.6, atol=1e-9)


def test_an_event_that_never_happens_is_reported(tmp_path):
    text = """
        robot = "pelican"
        duration = 0.01
        [[schedule]]
        event = "lock"
        time = 0
        joint = "elbow"
        [[schedule]]
        event = "set_inertia"
        when = {position = "shoulder", above = 50}
        link = "link2"
        inertia = {mass = 1, sphere = 0.1}
        """
    lines = run_scenario(scenario(tmp_path, text), tmp_path).splitlines()
    assert "Never: set inertia, whose condition did not hold." in lines
    assert "  t = 0 s: lock elbow; no energy is lost." in lines


def test_a_condition_on_a_position(tmp_path):
    text = """
        robot = "two_link"
        duration = 1
        gravity = [0, 0, 0]
        [start.velocity]
        theta1 = 1
        [[schedule]]
        event = "lock"
        when = {position = "theta1", above = 0.25}
        joint = "theta1"
        """
    read = read_scenario(scenario(tmp_path, text))
    run = sd.simulate(read.robot.copy(), read.start, read.duration, events=read.events)
    assert run.states[-1].tree.locked == ("theta1",)
    assert_allclose(run["theta1"][np.isfinite(run["theta1"])][-1], 0.25, rtol=1e-9)


def test_a_whole_tree_as_a_payload(tmp_path):
    (tmp_path / "arm.urdf").write_bytes(ARM.read_bytes())
    text = """
        robot = "two_link"
        duration = 0.1
        [[schedule]]
        event = "grasp"
        time = 0.05
        body = "arm.urdf"
        prefix = "tool/"
        to = "link2"
        name = "flange"
        twist = "co_moving"
        """
    read = read_scenario(scenario(tmp_path, text))
    tree = read.robot.copy()
    run = sd.simulate(tree, read.start, read.duration, events=read.events)
    assert run.events[0].link == "tool/flange"
    assert len(tree.coordinates) == 2 + sd.KinematicTree.from_urdf(ARM).nv
    assert set(tree.coordinates[2:]) == {f"tool/{name}" for name in sd.KinematicTree.from_urdf(ARM).coordinates}
    named = scenario(tmp_path, text.replace("arm.urdf", "ur5"))
    assert len(read_scenario(named).events[0].body.coordinates) == 6


@pytest.mark.slow
def test_a_constant_controller_of_joints_that_the_schedule_brings(tmp_path):
    hinge = "joint = {type = 'universal', axis1 = 'z', axis2 = 'y', name = 'hinge'}"
    body = GRASP.replace("= 1}", "= 1, box = [0.3, 0.2, 0.1]}")
    control = "[controller]\ntype = 'constant'\ntorque = {hinge = [0.2, 0.3], theta1 = 1}\n"
    read = read_scenario(scenario(tmp_path, START + control + body + hinge))
    run = sd.simulate(read.robot, read.start, 0.2, read.torque, read.events, step=0.02)
    assert run.coordinates == ("theta1", "theta2", "hinge[w1]", "hinge[w2]")
    assert_allclose(run.tau[-1], [1, 0, 0.2, 0.3])
    single = control.replace("hinge = [0.2, 0.3]", "'hinge[w2]' = 0.3")
    read = read_scenario(scenario(tmp_path, START + single + body + hinge))
    run = sd.simulate(read.robot, read.start, 0.2, read.torque, read.events, step=0.02)
    assert_allclose(run.tau[-1], [1, 0, 0, 0.3])
    passive = hinge.replace("name", "passive = true, name")
    for text in (control, single):
        assert any("is passive; leave it out" in x for x in problems(tmp_path, START + text + body + passive))
        wrong = text.replace("hinge", "binge", 1)
        assert "there is no such coordinate; did you mean" in problems(tmp_path, START + wrong + body + hinge)[0]


@pytest.mark.slow
def test_a_constant_torque_acts_while_its_joint_is_free(tmp_path):
    text = START + "[controller]\ntype = 'constant'\ntorque = {theta2 = 1}\n"
    lock = "[[schedule]]\nevent = 'lock'\njoint = 'theta2'\ntime = 0.1\n"
    unlock = lock.replace("lock'", "unlock'").replace("0.1", "0.2")
    read = read_scenario(scenario(tmp_path, text + lock + unlock))
    run = sd.simulate(read.robot, read.start, 0.3, read.torque, read.events, step=0.02)
    assert_allclose(run.tau[[0, -1], 1], 1)


@pytest.mark.parametrize(
    ("mistake", "place"),
    [
        (GRASP.replace("mass = 1", "mass = -1"), "schedule[0].body"),
        (GRASP.replace("'bar'", "3").replace('"bar"', "3"), "schedule[0].name"),
        (GRASP.replace('name = "bar"\n', ""), "schedule[0]"),
        (GRASP.replace('name = "bar"', 'name = ""'), "schedule[0].name"),
        (GRASP.replace('"link2"', '"link9"'), "schedule[0].to"),
        (GRASP.replace('"grasp"', '"grab"'), "schedule[0].event"),
        (GRASP.replace("{mass = 1}", '"missing.urdf"'), "schedule[0].body"),
    ],
)
def test_what_follows_from_a_problem_is_not_reported(tmp_path, mistake, place):
    """The robot would have what the events, stops and gains name, but for one mistake."""
    later = """
joint = {type = "revolute", axis = "z", limits = [-1, 1]}
[[schedule]]
event = "lock"
time = 0.2
joint = "bar"
[[schedule]]
event = "unlock"
when = {z = "bar", below = 0}
joint = "bar"
[[schedule]]
event = "release"
when = {position = "bar", below = 0}
what = "bar"
[controller]
type = "pd"
stiffness = {bar = 3}
target = {bar = 1}
[stops]
bar = "inelastic"
"""
    assert [problem.split(": ")[0] for problem in problems(tmp_path, START + mistake + later)] == [place]
    constant = later.replace("target = {bar = 1}", "torque = {bar = 1}").replace("stiffness = {bar = 3}\n", "")
    text = START + "saturate = true\n" + mistake + constant.replace('"pd"', '"constant"')
    assert [problem.split(": ")[0] for problem in problems(tmp_path, text)] == [place]
    # Other mistakes are reported beside it.
    both = problems(tmp_path, START + mistake + later.replace('when = {z = "bar"', 'when = {y = "link8"'))
    anything = place in ("schedule[0]", "schedule[0].name") or "missing" in mistake
    assert [problem.split(": ")[0] for problem in both] == [place] + ["schedule[2].when.y"] * (not anything)


def test_a_release_with_a_wrong_key_is_the_only_problem(tmp_path):
    """The link would still be in the world."""
    later = """[[schedule]]
event = "release"
time = 0.2
what = "bar"
into_world = 1
[[schedule]]
event = "hand_over"
time = 0.3
what = "bar"
to = "link1"
"""
    found = problems(tmp_path, START + GRASP + later)
    assert found == ["schedule[1].into_world: expected true or false; got 1"]


def test_problems_do_not_hide_one_another(tmp_path):
    text = "control_period = 0.1\nx = 1\n[controller]\ntype = 'none'\n[start.position]\ntheta9 = 1\n"
    found = problems(tmp_path, START + text)
    assert [problem.split(": ")[0] for problem in found] == ["x", "start.position.theta9", "control_period"]


def test_inertias_may_be_as_they_are_written(tmp_path):
    """One that no rigid body has, as of a link of a robot that was identified."""
    with pytest.warns(sd.ScrewdynWarning):
        effective = sd.Inertia.effective(1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1]))
    record = sd.SetInertia("link2", effective, time=0.1).to_dict()
    inertia = ", ".join(f"{key} = {str(value).lower()}" for key, value in record["inertia"].items())
    text = f"[[schedule]]\nevent = 'set_inertia'\ntime = 0.1\nlink = 'link2'\ninertia = {{{inertia}}}\n"
    (event,) = read_scenario(scenario(tmp_path, START + text)).events
    assert event.inertia.is_effective
    assert event.to_dict() == record
