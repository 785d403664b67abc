"""The GIM of a planar arm in link frames: Bhangale 2004, section 3.2.1, whose steps are the rows.

Vectors have two entries, a wrench [n; f] and a twist [ω; v] a scalar and a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from screwdyn.papers.formulations.link_frames.counting import Begin, Elements

__all__ = ["Body", "Link", "added", "along", "column", "composites", "crossed", "element", "gim", "moved", "slides"]

Vector = tuple[Any, Any]


class Body(NamedTuple):
    """Moment of inertia and first moment about O_i, a point of link i on its joint, and a_i from O_i to O_{i+1}."""

    I: Any
    first: Vector
    a: Vector


class Link(NamedTuple):
    """Link i at a configuration, with x of frame i + 1 along a_i.

    The length a and r_i from the centre of mass to O_{i+1} in frame i + 1 are those of a revolute joint. With a
    prismatic joint, M_i and a_i are constant in frame i: they are ``fixed``; ``slide`` is its direction in frame i,
    ``b`` its coordinate.
    """

    c: Any
    s: Any
    a: Any
    r: Vector
    I: Any
    m: Any
    carried: Any
    fixed: Body | None
    slide: Vector | None
    b: Any

    def turned(self, r: Vector) -> Vector:
        """Q_i r: 4M 2A."""
        return r[0] * self.c - r[1] * self.s, r[0] * self.s + r[1] * self.c

    def back(self, r: Vector) -> Vector:
        """Q_iᵀ r: 4M 2A."""
        return r[0] * self.c + r[1] * self.s, r[1] * self.c - r[0] * self.s


def crossed(a: Vector, b: Vector) -> Any:
    """e · (a × b): 2M 1A."""
    return a[0] * b[1] - a[1] * b[0]


def added(a: Vector, b: Vector) -> Vector:
    """a + b: 2A."""
    return a[0] + b[0], a[1] + b[1]


def bodies(links: Sequence[Link], begin: Begin) -> Iterator[Body]:
    """M_i of all links: steps 1 to 5(a), with the m d² that the paper leaves out."""
    for k, link in enumerate(links):
        body = link.fixed
        if body is None:
            begin("1")
            a = (link.a * link.c, link.a * link.s)
            begin("2")
            r = link.turned(link.r)
            begin("3")
            d = (a[0] - r[0], a[1] - r[1])
            begin("4")
            first = (link.m * d[0], link.m * d[1])
            begin("5(a)")
            body = Body(link.I + (d[0] * first[0] + d[1] * first[1]), first, a)
        begin("1")
        yield body._replace(a=added(body.a, along(links, k, links[k + 1].b))) if slides(links, k + 1) else body


def slides(links: Sequence[Link], k: int) -> bool:
    """Whether there is a link k and its joint is prismatic."""
    return k < len(links) and links[k].fixed is not None


def along(links: Sequence[Link], k: int, b: Any) -> Vector:
    """b times the direction of joint k + 1 in frame k: 6M 2A."""
    x, y = links[k + 1].slide or (0, 0)
    return links[k].turned((x * b, y * b))


def composites(links: Sequence[Link], begin: Begin) -> list[tuple[Body, Body, Vector]]:
    """M̃_i and M_i of all links, and s = δ̃_{i+1} + m̃_{i+1} a_i: steps 1 to 5."""
    found: list[tuple[Body, Body, Vector]] = []
    for k, own in reversed([*enumerate(bodies(links, begin))]):
        body, s = own, (0, 0)
        if found:
            beyond, m, a = found[-1][0], links[k + 1].carried, own.a
            begin("5(b) rotation")
            first = links[k].turned(beyond.first)
            begin("5(b)")
            s = (first[0] + m * a[0], first[1] + m * a[1])
            I = beyond.I + (a[0] * first[0] + a[1] * first[1]) + (a[0] * s[0] + a[1] * s[1])
            begin("5(b) sum")
            body = Body(own.I + I, added(own.first, s), a)
        found.append((body, own, s))
    return found[::-1]


def column(link: Link, body: Body) -> tuple[Any, Vector]:
    """M̃_i p_i = [n; f]: nil, or 4M 1A for a prismatic joint."""
    if link.slide:
        x, y = link.slide
        return crossed(body.first, link.slide), (link.carried * x, link.carried * y)
    return body.I, (-body.first[1], body.first[0])


def moved(link: Link, a: Vector, n: Any, f: Vector) -> tuple[Any, Vector]:
    """A_{i+1,i}ᵀ [n; f] in frame i: 6M 4A."""
    f = link.turned(f)
    return n + crossed(a, f), f


def element(link: Link, n: Any, f: Vector) -> Any:
    """p_iᵀ [n; f]: nil, or 2M 1A for a prismatic joint."""
    return link.slide[0] * f[0] + link.slide[1] * f[1] if link.slide else n


def gim(links: Sequence[Link], begin: Begin) -> Elements:
    """i_ij for j ≤ i: steps 1 to 6 (the last is printed as 7)."""
    found, at = {}, composites(links, begin)
    begin("6")
    for i, (link, (body, _, _)) in enumerate(zip(links, at, strict=True)):
        wrench = column(link, body)
        found[i, i] = link.carried if link.slide else body.I
        for j in reversed(range(i)):
            wrench = moved(links[j], at[j][0].a, *wrench)
            found[i, j] = element(links[j], *wrench)
    return found
