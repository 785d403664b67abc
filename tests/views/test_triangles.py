import numpy as np
import pytest

from screwdyn.views.triangles import Solid, ball, box, capsule, helix, tube

RED = (1.0, 0.0, 0.0, 1.0)
X, Z = np.eye(3)[0], np.eye(3)[2]


def volume(solid: Solid) -> float:
    """Of the body within a closed surface whose faces turn outwards, by Gauss's theorem."""
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    return float(np.einsum("fi,fi->", a, np.cross(b, c))) / 6


def test_solids_are_closed_and_turn_their_faces_outwards() -> None:
    assert volume(box((1.0, 2.0, 3.0), RED)) == pytest.approx(6.0, rel=1e-12)
    sector = 0.5 * np.sin(2 * np.pi / 24) * 24
    length = float(np.linalg.norm([0.3, 1.1, -0.4]))
    slanted = tube([(0.1, 0.2, 0.3), (0.4, 1.3, -0.1)], 0.05, RED, sides=24)
    assert volume(slanted) == pytest.approx(sector * 0.05**2 * length, rel=1e-12)
    assert volume(ball(0.5, (1.0, 2.0, 3.0), RED)) == pytest.approx(4 / 3 * np.pi * 0.125, rel=0.07)
    caps = volume(capsule(0.5, 0.0, RED))
    section = volume(capsule(0.5, 2.0, RED)) - caps
    assert section == pytest.approx(0.5 * np.sin(2 * np.pi / 16) * 16 * 0.25 * 2.0, rel=1e-12)
    # Of a wire, by Pappus's theorem: area times length of the curve.
    wire = helix(Z, np.zeros(3), 0.02, 0.25, 0.1, 0.005, RED)
    turns = 0.25 / (2 * np.pi * 0.02)
    curve = turns * 2 * np.pi * np.hypot(0.1, 0.02)
    assert volume(wire) == pytest.approx(0.5 * np.sin(np.pi / 3) * 6 * 0.005**2 * curve, rel=0.02)


@pytest.mark.parametrize("pitch", [0.02, -0.02])
def test_a_helix_has_the_pitch_and_the_hand_of_its_screw(pitch: float) -> None:
    axis, point = np.array([0.6, 0.0, 0.8]), np.array([1.0, 2.0, 3.0])
    wire = helix(axis, point, pitch, 0.3, 0.1, 1e-6, RED)
    away = wire.vertices - point
    along = away @ axis
    across = away - np.outer(along, axis)
    np.testing.assert_allclose(np.linalg.norm(across, axis=1), 0.1, atol=2e-6)
    frame = np.linalg.svd(axis[None])[2][1:]
    frame[1] = np.cross(axis, frame[0])
    angle = np.unwrap(np.arctan2(across @ frame[1], across @ frame[0]))
    slope = np.polyfit(angle, along, 1)[0]
    assert slope == pytest.approx(pitch, rel=1e-3)
    assert np.ptp(along) == pytest.approx(0.3, rel=1e-3)


def test_a_helix_has_from_half_a_turn_to_eight_turns() -> None:
    assert np.ptp(helix(Z, np.zeros(3), 1.0, 0.1, 0.1, 1e-6, RED).vertices[:, 2]) == pytest.approx(np.pi, rel=1e-3)
    fine = helix(Z, np.zeros(3), 1e-4, 0.1, 0.1, 1e-6, RED)
    assert np.ptp(fine.vertices[:, 2]) == pytest.approx(16e-4 * np.pi, rel=0.01)


def test_equal_solids_look_the_same() -> None:
    assert box((1, 1, 1), RED).equals(box((1, 1, 1), RED))
    assert not box((1, 1, 1), RED).equals(box((1, 1, 2), RED))
    assert not box((1, 1, 1), RED).equals(box((1, 1, 1), (1.0, 0.0, 0.0, 0.5)))
    assert not box((1, 1, 1), RED).equals(ball(1.0, X, RED))
