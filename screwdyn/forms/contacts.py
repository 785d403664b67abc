"""Trees with contacts: gaps, rows of their rates, and configurations in which links are apart (mathematics.md §14)."""

from __future__ import annotations

import numpy as np

from screwdyn.core import Array, ArrayLike, ContactError
from screwdyn.forms.numbers import Dynamics, one_state
from screwdyn.physics.closure import Closure
from screwdyn.physics.contact import ContactRows, Contacts

# Depth, m, of points that count as apart; Newton steps, and the size of the last one, rad and m.
_APART, _STEPS, _NEAREST = 1e-12, 50, 1e-9


class Touching(Dynamics):
    """Functions of a tree with contacts."""

    def contact_rows(self, q: ArrayLike, qd: ArrayLike) -> ContactRows:
        """Gaps, Jacobian, drift and rates of the points of all contacts (docs/mathematics.md §14).

        Returns
        -------
        ContactRows
            ``gaps``, (…, k), m; ``jacobian``, (…, k, 3, nv); ``drift`` and ``rates``, (…, k, 3). Of the three rows of a
            point, the first is along the normal, out of the body, and the others along two tangents.

        Raises
        ------
        ContactError
            As for :meth:`contact_gaps`.
        ShapeError
            As for ``jacobian_dot``.
        """
        return ContactRows(*self._of_points("contact_rows", q=q, qd=qd))

    def hull(self, link: str) -> Array:
        """Corners of the convex hull of a link's meshes, (k, 3), in its frame, m: points that touch planes as they do.

        Of its collision shapes, or if there are none of all shapes. Needs the extra ``view``, which reads meshes.

        Raises
        ------
        ContactError
            If there is no mesh, or what there is has no volume.
        UnknownNameError
            If there is no such link.
        ScrewdynError
            If a file cannot be read.

        Examples
        --------
        ``tree.touch("foot", to="base", on=sd.Plane(), points=tree.hull("foot"))``
        """
        from scipy.spatial import ConvexHull, QhullError

        from screwdyn.views.scene import shape_solids

        shapes = self._frozen().model.topology.at(link).link.shapes
        chosen = [x for x in shapes if x.use == "collision"] or shapes
        found = [solid.vertices for x in chosen if x.kind == "mesh" for solid in shape_solids(x, (0.0,) * 4)]
        try:
            corners = np.concatenate(found)
            return np.asarray(corners[ConvexHull(corners).vertices])
        except (ValueError, QhullError):
            raise ContactError(f"link {link!r} has no mesh with a volume; give points=") from None

    def separate(self, q: ArrayLike) -> Array:
        """The configuration near q, (nq,), in which no point of a contact is inside its body.

        The nearest one in the metric of M, by Newton steps; q itself if no point is inside. Closed loops stay closed.

        Raises
        ------
        ContactError
            If there is none near q; the message states the depth that is left.
        LoopError
            If the loops cannot be closed.
        ShapeError
            As for ``forward_kinematics``.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> ball = sd.Inertia.sphere(2.0, 0.1)
        >>> _ = tree.attach(ball, to="base", joint=sd.prismatic("z"), name="ball", shape=sd.Shape.sphere(0.1))
        >>> _ = tree.touch("ball", to="base", on=sd.Plane())
        >>> tree.separate([0.05]).round(12)
        array([0.1])
        """
        one = self._frozen()
        contacts, closure = Contacts(one, one.model), Closure(one)
        (start,) = one_state(one.model, q=q)
        configurations, q = one.model.configurations, start
        for _ in range(_STEPS):
            rows, Z = contacts.rows(q, np.zeros(one.model.nv)), closure.factors(q).motions()
            # From the configuration q, back to the start as far as no point is inside.
            A, back = rows.jacobian[:, 0] @ Z, Z.T @ one.mass_matrix(q) @ configurations.difference(q, start)
            step = Z @ (back + _least(A, -rows.gaps - A @ back))
            if (rows.gaps >= -_APART).all() and (np.abs(step) <= _NEAREST).all():
                return q
            q = closure.closed(configurations.integrate(q, step))
        at, depth = contacts.deepest(rows.gaps)
        raise ContactError(
            f"no configuration near q was found in which links are apart: {at.link!r} is {depth:.3g} mm inside "
            f"{at.to!r} at contact {at.name!r}; start nearer to one"
        )


def _least(A: Array, b: Array) -> Array:
    """The least x with A x >= b (Lawson and Hanson, *Solving Least Squares Problems*, 1974, §23.4)."""
    from scipy.optimize import nnls

    E = np.vstack([A.T, b])
    goal = np.zeros(len(E))
    goal[-1] = 1.0
    r = E @ nnls(E, goal)[0] - goal
    return np.asarray(-r[:-1] / r[-1]) if r[-1] else np.zeros(len(r) - 1)
