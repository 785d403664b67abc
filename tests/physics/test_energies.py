"""Energies of links and subtrees: their laws, and closed forms of known arms."""

import numpy as np
import pytest
import sympy as sp
from cases import close
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import four_bar

import screwdyn as sd
from screwdyn.testing import random_inertia, random_tree

ROUNDING = 1e-13


def motors(seed):
    """A tree of all kinds of joints with an armature, both kinds of rotors, and joints that follow another."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4, EVERY)
    tree.gravity = rng.normal(size=3)
    lead = sd.revolute("y", armature=0.3, rotor=sd.Rotor(0.02, -50.0), name="lead")
    follow = sd.universal("x", "z", armature=0.2, name="free")
    mimic = sd.prismatic("x", armature=0.1, mimic=sd.Mimic("lead", -1.7, 0.4), name="follow")
    wheel = sd.revolute("z", rotor=sd.Rotor(0.01, 30.0, mass=0.5, across=0.02), name="wheel")
    for k, joint in enumerate((lead, follow, mimic, wheel, sd.fixed())):
        tree.attach(random_inertia(rng), rng.choice(tree.links), joint, rng.normal(size=3), f"motor{k}")
    return tree, tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)


@given(st.integers(0, 2**32 - 1))
def test_energies_of_links_add_up(seed):
    """Each is that of the link's own M_i and centre of mass; the totals are sums over all links, rotors included."""
    tree, q, qd = motors(seed)
    T, U = {}, {}
    for link in tree.links:
        part, inertia = tree.contribution(link, q, qd), tree.link(link).inertia
        rates = qd[[tree.coordinates.index(name) for name in part.coordinates]]
        T[link], U[link] = tree.link_kinetic_energy(link, q, qd), tree.link_potential_energy(link, q)
        close(T[link], 0.5 * rates @ np.asarray(part.M) @ rates, tree.kinetic_energy(q, qd), ROUNDING)
        height = 0.0
        if inertia is not None:
            center = tree.forward_kinematics(link, q) @ [*inertia.com, 1]
            height = -inertia.mass * tree.gravity @ center[:3]
        close(U[link], height, 1 + abs(height), ROUNDING)
    scale = tree.kinetic_energy(q, qd), 1 + np.abs([*U.values()]).sum()
    for link in tree.links:
        beyond = tree.subtree(link)
        close(tree.subtree_kinetic_energy(link, q, qd), sum(T[x] for x in beyond), scale[0], ROUNDING)
        close(tree.subtree_potential_energy(link, q), sum(U[x] for x in beyond), scale[1], ROUNDING)
    close(tree.subtree_kinetic_energy(tree.base, q, qd), tree.kinetic_energy(q, qd), scale[0], ROUNDING)
    close(tree.subtree_potential_energy(tree.base, q), tree.potential_energy(q), scale[1], ROUNDING)


@pytest.mark.slow
def test_closed_forms_of_the_planar_arm():
    """Laus Eqs. 18 and 36, lecture Eqs. 34 and 38, for the second link of an arm with symbols."""
    m1, m2, a, l1, l2, I1, I2, G = sp.symbols("m1 m2 a l1 l2 I1 I2 G", positive=True)
    tree = sd.KinematicTree(gravity=(0, -G, 0))
    tree.attach(sd.Inertia.planar(m1, (l1, 0), I1), to="base", joint=sd.revolute("z", name="p"), name="one")
    tree.attach(sd.Inertia.planar(m2, (l2, 0), I2), "one", sd.revolute("z", name="s"), (a, 0, 0), "two")
    sym = tree.symbolic()
    (p, s), (u, v) = sym.q, sym.qd
    v2 = (a * u) ** 2 + (l2 * (u + v)) ** 2 + 2 * a * l2 * u * (u + v) * sp.cos(s)
    kinetic = {"one": (m1 * l1**2 + I1) * u**2 / 2, "two": m2 * v2 / 2 + I2 * (u + v) ** 2 / 2}
    potential = {"one": m1 * G * l1 * sp.sin(p), "two": m2 * G * (a * sp.sin(p) + l2 * sp.sin(p + s))}
    for link in ("one", "two"):
        assert sp.simplify(sym.link_kinetic_energy(link) - kinetic[link]) == 0
        assert sp.simplify(sym.link_potential_energy(link) - potential[link]) == 0
    assert sp.simplify(sym.subtree_kinetic_energy("one") - sym.kinetic_energy()) == 0
    assert sp.simplify(sym.subtree_potential_energy("one") - sym.potential_energy()) == 0


def test_slopes_of_the_energies_are_those_of_the_contribution():
    """∂T_i/∂q̇ = M_i q̇ and ∂U_i/∂q = g_i."""
    tree, q, qd = motors(1)
    D = tree.derivatives
    for part, kinetic, potential in (
        (tree.contribution("motor2", q, qd), D.link_kinetic_energy, D.link_potential_energy),
        (tree.subtree_contribution("motor2", q, qd), D.subtree_kinetic_energy, D.subtree_potential_energy),
    ):
        own = [tree.coordinates.index(coordinate) for coordinate in part.coordinates]
        (_, by_qd), by_q = kinetic("motor2", q, qd), potential("motor2", q)
        close(by_qd[own], part.M @ qd[own], 1 + np.abs(by_qd).sum(), ROUNDING)
        close(by_q[own], np.asarray(part.g), 1 + np.abs(by_q).sum(), ROUNDING)
        assert not np.delete(by_qd, own).any()


def test_closed_loops_change_no_energy_of_a_link():
    tree, (q, qd) = four_bar()
    opened = tree.copy()
    opened.open("pin")
    for link in tree.links:
        assert tree.link_kinetic_energy(link, q, qd) == opened.link_kinetic_energy(link, q, qd)
        assert tree.link_potential_energy(link, q) == opened.link_potential_energy(link, q)


def test_a_missing_link_is_named():
    with pytest.raises(sd.UnknownNameError, match="forearm"):
        sd.robots.two_link().link_kinetic_energy("forearm", [0, 0], [0, 0])
