"""Charts of a model: how the coordinates of its placements enter the rows of its table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.mechanism.topology import leaders
from screwdyn.physics.charts import GROUP, ROW, Charts
from screwdyn.physics.couplings import COUPLING
from screwdyn.physics.placement import Placement

__all__ = ["coupled_charts", "group_charts"]

_ORDINARY = Charts(np.arange(0), np.zeros((0, GROUP), np.int64), np.zeros((0, 4)), np.zeros((0, COUPLING)))


def group_charts(former: Charts | None, row: int, position: int, new: Sequence[Placement]) -> Charts | None:
    """Charts of a former model before the given row and position, followed by those of later links; no couplings."""
    if former is None:
        if not any([at.grouped for at in new]):
            return None
        former = _ORDINARY._replace(where=np.arange(row))
    charts = _followed(former, row, position, new)
    return charts if len(charts.groups) else None


def _followed(former: Charts, row: int, position: int, new: Sequence[Placement]) -> Charts:
    """Charts before the given row and position, followed by those of later links, without couplings."""
    where, groups, terms = former.where[:row], former.groups, former.terms
    if len(groups) and groups[-1, ROW] >= row:  # a group joint has been detached
        groups, terms = groups[groups[:, ROW] < row], terms[terms[:, ROW] < row]
    new_where: list[int] = []
    new_groups: list[list[int]] = []
    new_terms: list[tuple[float, ...]] = []
    for at in new:
        joint = at.joint
        if joint is None:
            continue
        if joint.chart is None:
            new_where += range(position, position + len(at.freedoms))
        else:
            new_where += [-1] * joint.nv
            new_groups.append([row, position, joint.chart.orientation, joint.chart.translations])
            new_terms += [(row + m, row + k, row + l, c) for m, k, l, c in joint.chart.structure_constants]
        row, position = row + len(at.freedoms), position + joint.nq
    if new_where:
        where = np.concatenate([where, np.array(new_where)])
    if new_groups:
        groups = np.concatenate([groups, np.array(new_groups)])
        terms = np.concatenate([terms, np.array(new_terms)])
    return Charts(where, groups, terms, _ORDINARY.couplings)


def coupled_charts(placements: Mapping[str, Placement]) -> Charts | None:
    """Charts of all links, with the couplings of all rows if a joint follows another one."""
    links = tuple(placements.values())
    if not any(at.follows for at in links):
        return group_charts(None, 0, 0, links)
    charts = _followed(_ORDINARY, 0, 0, links)
    joints = {at.name: at.joint for at in links if at.joint is not None and at.name is not None}
    first: dict[str, int] = {}
    columns: dict[str, int] = {}
    row = 0
    for name, joint in joints.items():
        first[name], row = row, row + joint.screws.shape[1]
        columns |= zip(joint.freedom_names(name), itertools.count(len(columns)), strict=False)
    couplings: list[list[Any]] = []
    follows = leaders(joints)
    for name, joint in joints.items():
        leader, ratio, offset = follows.get(name, (name, 1.0, 0.0))
        if joint.mimic is not None:
            charts.where[first[name]] = charts.where[first[leader]]
        couplings += [[columns[x], ratio, offset] for x in joints[leader].freedom_names(leader)]
    return charts._replace(couplings=expressions.array(couplings))
