"""What all formulations share: the rows of a tree at a state, and the results under the names of the library."""

from __future__ import annotations

import copy
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, UnknownNameError, expressions
from screwdyn.mechanism import Inertia, Joint, Mechanism, check_open, screw_kind
from screwdyn.mechanism.topology import leaders
from screwdyn.screws.screw import skew_of

_STATES = frozenset(("q", "qd", "qdd", "theta", "thetad"))

Wrenches: TypeAlias = Mapping[str, ArrayLike] | None
"""[n; f], (6,), that act on links, by their names, in the link's frame."""

JointVector: TypeAlias = Any
"""Array_like with an entry for each joint: what methods with the names of a source take; they get it as an array."""


def _record(cls: type) -> None:
    """Check the states of all public methods of a class, and record their expressions."""
    for name, method in [*vars(cls).items()]:
        public = inspect.isfunction(method) and not name.startswith("_")
        if public and not _STATES.isdisjoint(inspect.signature(method).parameters):
            setattr(cls, name, _recording(method))


def _recording(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that gets each `JointVector` as an array, and runs on traced scalars in the place of expressions."""
    signature = inspect.signature(method)
    states = [name for name, parameter in signature.parameters.items() if parameter.annotation == "JointVector"]

    @functools.wraps(method)
    def call(self: Formulation, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        del given["self"]
        given |= {name: self._vector(given[name], name) for name in states}
        found = symbolic([x for x in given.values() if getattr(x, "dtype", None) != np.float64])
        if not (found or self._symbolic) or not all(map(expressions.is_expression, found)):
            return method(self, **given)
        from screwdyn.backends.closed_form import Derivation

        derivation = Derivation()

        def of_objects(f: Callable[..., Any], part: Any) -> Any:
            if isinstance(part, np.ndarray):
                return f(part.ravel()).astype(object).reshape(part.shape) if part.dtype == object else part
            return f(np.array([part]))[0] if _is_symbolic(part) else part

        traced = functools.partial(of_objects, derivation.scalars)
        given |= {name: numbers(given[name], name) for name in _STATES & given.keys()}
        if isinstance(wrenches := given.get("wrenches"), Mapping):
            given["wrenches"] = {link: numbers(x, f"the wrench on {link!r}") for link, x in wrenches.items()}
        twin = copy.copy(self)
        vars(twin).update(mapped(traced, vars(self)), _symbolic=False)
        found = method(twin, **mapped(traced, given))
        return mapped(functools.partial(of_objects, derivation.expressions), found)

    return call


def numbers(x: ArrayLike, what: str) -> Array:
    """An array of finite floats; of objects, as given, if some entries are expressions or traced scalars."""
    try:
        given = np.asarray(x)
        plain = given.dtype != object
        values = expressions.real(given if plain else [entry for entry in given.flat if not _is_symbolic(entry)])
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be numbers; got {x!r}") from None
    if not np.isfinite(values).all():
        raise ShapeError(f"{what} has entries that are not finite: {given.tolist()}")
    return given if values.size < given.size else values.reshape(given.shape)


def symbolic(x: Any) -> list[Any]:
    """The expressions and traced scalars in nested containers."""
    parts: list[Any] = []
    mapped(parts.append, x)
    return [entry for part in parts for entry in np.asarray(part, dtype=object).flat if _is_symbolic(entry)]


def _is_symbolic(x: Any) -> bool:
    """Whether a number is an expression, or a scalar with sines and cosines of its own, such as a traced one."""
    return expressions.is_expression(x) or hasattr(x, "cos")


def mapped(f: Callable[[Any], Any], x: Any) -> Any:
    """Nested mappings, tuples and lists with f of all that they contain."""
    if isinstance(x, Mapping):
        return {key: mapped(f, part) for key, part in x.items()}
    if isinstance(x, tuple | list):
        parts = [mapped(f, part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return f(x)


class Row(NamedTuple):
    """Joint i and link i, with everything that is welded to the link, in SI units.

    The papers number links from the base to the tip: link i − 1 carries link i. In a tree it is the row ``parent``.
    """

    name: str  # of the freedom of the joint, or of the joint if it follows another one
    parent: int  # −1 for the base
    path: tuple[int, ...]  # rows from the base to this one
    # Direction of the joint's axis, and its point nearest to the origin, (3,), in the frame of link i − 1. In frames of
    # Denavit and Hartenberg these are (0, 0, 1) and 0.
    z: Array
    p: Array
    # While q grows by 1, the link turns by sigma about the axis and slides by h along it: 1 and 0 for a revolute joint,
    # 0 and 1 for a prismatic one, 1 and the pitch for a helical one.
    sigma: Any
    h: Any
    home: Array  # pose of link i in link i − 1 at q = 0, (4, 4)
    # Mass; centre of mass (3,) and inertia tensor about it (3, 3), in the frame of link i.
    m: Any
    com: Array
    I: Array
    # Viscous and Coulomb friction of the joint, and what its motor adds to the diagonal of the mass matrix.
    damping: Any
    friction: Any
    armature: Any

    def pose(self, q: Any) -> Array:
        """^{i−1}A_i(q): a screw motion about the axis, then home."""
        z, R = self.z, np.eye(3)
        if self.sigma:
            c, s = expressions.cos_sin(q)
            R = R * c + skew_of(z) * s + np.outer(z, z) * (1 - c)
        p = self.p + R @ (self.home[:3, 3] - self.p) + z * (self.h * q)
        return np.vstack([np.column_stack([R @ self.home[:3, :3], p]), [0.0, 0.0, 0.0, 1.0]])


def _row(rows: list[Row], parent: int, S: Array, home: Array, joint: Joint) -> Row:
    """The row of a screw S = [w; v] in the frame of the moved link, which has the pose home in the parent; massless."""
    w = home[:3, :3] @ S[:3]
    v = home[:3, :3] @ S[3:] + cross(home[:3, 3], w)
    turns = any(not expressions.is_zero(x) for x in S[:3])
    z, p, sigma, h = (w, cross(w, v), 1.0, v @ w) if turns else (v, np.zeros(3), 0.0, 1.0)
    z, p, h = _tidied(z), _tidied(p), _tidied(np.array([h]))[0]
    path = (*(rows[parent].path if parent >= 0 else ()), len(rows))
    motor = joint.damping, joint.friction, joint.armature
    return Row("", parent, path, z, p, sigma, h, home, 0.0, np.zeros(3), np.zeros((3, 3)), *motor)


def _tidied(a: Array) -> Array:
    """Without the rounding of entries that are integers, such as 0 and 1."""
    if a.dtype == object:
        return expressions.array(expressions.tidied(a))
    integers = np.round(a)
    return np.where(np.abs(a - integers) < 1e-15, integers, a)


def cross(a: Array, b: Array) -> Array:
    """a × b of two vectors (3,), with the six products of the books; those of matrices would be counted as more."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


class Formulation(ABC):
    """The equations of motion of a tree, M(q) q̈ + h(q, q̇) + g(q) = τ, as one publication computes them.

    It is made of a serial arm or a tree with revolute, prismatic, helical, universal, cylindrical and fixed joints;
    ScrewdynError names other joints or loops, and where the source excludes them. It is a snapshot: later changes of
    the tree do not affect it. It takes one state at a time, of numbers, SymPy expressions or traced scalars. Every
    method of a state, also those with the names of the source, raises ShapeError if an argument is not n of these, or
    not finite.

    The source's equations are about all joints, x, those of the ``rows``. If joints follow others, as rotors do,
    x = W q + offset, and results with the names of the library are those of the source by substitution: M = Wᵀ M_x W,
    τ = Wᵀ τ_x. The armatures of the joints, which no source has, are added to the diagonal of M_x. Methods with the
    names of the source take x.

    Attributes
    ----------
    coordinates, joints : tuples of str
        Names of the n freedoms, as in the tree, and of the joints of the rows.
    rows : tuple of Row
    W, offset : (rows, n) and (rows,) arrays
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².
    armature : (rows,) array
        kg m², or kg for prismatic joints.
    """

    kinds: ClassVar[tuple[str, ...]] = ("revolute", "prismatic", "helical")  # of the screws of joints that are covered
    scope: ClassVar[str]  # what the source is about, which is why other trees are refused

    def __init__(self, tree: Mechanism) -> None:
        if not isinstance(tree, Mechanism):
            raise ScrewdynError(f"{type(self).__name__} is made from a KinematicTree; got {tree!r}")
        self.coordinates, self.gravity = tree.coordinates, tree.gravity
        self.rows, self.places = self._read(tree)
        self.joints = tuple(row.name for row in self.rows)
        ways = leaders({edge["name"]: edge["joint"] for _, _, edge in tree.graph.edges(data=True)})
        led = [ways.get(name, (name, 1.0, 0.0)) for name in self.joints]
        W = [[ratio if name == leader else 0.0 for name in self.coordinates] for leader, ratio, _ in led]
        self.W = expressions.array(W).reshape(len(led), len(self.coordinates))
        self.offset = expressions.array([offset for _, _, offset in led])
        self.armature = expressions.array([row.armature for row in self.rows])
        self._symbolic = bool(symbolic(vars(self)))
        self._dtype = np.dtype(object if self._symbolic else float)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _record(cls)

    def _read(self, tree: Mechanism) -> tuple[tuple[Row, ...], dict[str, tuple[int, Array]]]:
        """The rows of a tree, and for each link its row, −1 on the base, and its pose in the frame of that row."""
        name = type(self).__name__
        check_open(tree.topology, name, f"open the loops in a copy of the tree first: {self.scope}")
        edges = {child: edge for _, child, edge in tree.graph.edges(data=True)}
        refused = [
            f"{edge['name']!r} is {joint.kind}"
            for edge in edges.values()
            if (joint := edge["joint"]).chart is not None
            or not {screw_kind(S) for S in joint.screws.T} <= {*self.kinds}
        ]
        if refused:
            covered = f"{name} covers joints with {' and '.join(self.kinds)} axes"
            raise ScrewdynError(f"{covered}; {', '.join(refused)}: {self.scope}")
        places: dict[str, tuple[int, Array]] = {tree.base: (-1, np.eye(4))}
        rows: list[Row] = []
        bodies: dict[int, Inertia] = {}
        for link in tree.links[1:]:
            edge = edges[link]
            joint, (at, T) = edge["joint"], places[str(tree.parent(link))]
            T = T @ edge["home"]
            for S, freedom in zip(joint.screws.T, joint.row_names(edge["name"]), strict=True):
                rows.append(_row(rows, at, S, T, joint)._replace(name=freedom))
                at, T = len(rows) - 1, np.eye(4)
            places[link] = at, T
            body = tree.link(link).inertia
            if body is not None and at >= 0:
                body = body.transformed(T)
                bodies[at] = bodies[at] + body if at in bodies else body
        for i, body in bodies.items():
            rows[i] = rows[i]._replace(m=body.mass, com=body.com, I=body.tensor)
        return tuple(rows), places

    # What all take from the rows of a tree at a state

    def joint_positions(self, q: ArrayLike) -> Array:
        """W q + offset, (rows,): the positions that methods with the names of the source take."""
        q = self._vector(q, "q", self.coordinates)
        return q if self._independent else self.W @ q + self.offset

    def joint_rates(self, qd: ArrayLike, what: str = "qd") -> Array:
        """W q̇, (rows,), and likewise accelerations, which an error then names."""
        qd = self._vector(qd, what, self.coordinates)
        return qd if self._independent else self.W @ qd

    def contracted(self, a: Array) -> Array:
        """Wᵀ a or Wᵀ a W of a vector or a matrix over all joints."""
        if self._independent:
            return a
        left = self.W.T @ a
        return left @ self.W if a.ndim > 1 else left

    @property
    def _independent(self) -> bool:
        """Whether no joint follows another one: W = 1."""
        return self.joints == self.coordinates

    def _vector(self, x: ArrayLike, what: str, names: tuple[str, ...] | None = None) -> Array:
        """A state, checked to have an entry for each name, by default each row; of objects if it or the tree is."""
        found, names = numbers(x, what), self.joints if names is None else names
        if found.shape != (len(names),):
            expected = f"must have an entry for each of {', '.join(names)}"
            raise ShapeError(f"{what} of one state {expected}; got shape {found.shape}")
        return found if found.dtype == object else found.astype(self._dtype)

    def poses(self, q: JointVector) -> list[Array]:
        """⁰A_i, (4, 4), of all rows: the product of ^{k−1}A_k along the path (Fu Eq. 3.2-4)."""
        found: list[Array] = []
        for row, x in zip(self.rows, q, strict=True):
            A = row.pose(x)
            found.append(A if row.parent < 0 else found[row.parent] @ A)
        return found

    def axes(self, poses: list[Array]) -> list[tuple[Array, Array]]:
        """z_{i−1} and p_{i−1} of all rows: direction and point of the axis of joint i in the base frame, (3,)."""
        before = [np.eye(4) if row.parent < 0 else poses[row.parent] for row in self.rows]
        return [(A[:3, :3] @ row.z, A[:3, :3] @ row.p + A[:3, 3]) for row, A in zip(self.rows, before, strict=True)]

    def centres(self, poses: list[Array]) -> list[Array]:
        """Centres of mass of all rows in the base frame, (3,)."""
        return [A[:3, :3] @ row.com + A[:3, 3] for row, A in zip(self.rows, poses, strict=True)]

    def geometry(self, q: JointVector) -> tuple[list[Array], list[tuple[Array, Array]], list[Array]]:
        """Poses, axes and centres of mass of all rows in the base frame."""
        poses = self.poses(q)
        return poses, self.axes(poses), self.centres(poses)

    def jacobian(self, i: int, point: Array, axes: list[tuple[Array, Array]]) -> Array:
        """Twist [ω; v] of a point of link i for unit rates of all joints, (6, rows); zero for those off its path.

        The column of joint j is [z_{j−1}; z_{j−1} × (point − p_{j−1})] if it is revolute, [0; z_{j−1}] if prismatic.
        """
        columns = [np.zeros(6) for _ in axes]
        for j in self.rows[i].path:
            (z, p), s, h = axes[j], self.rows[j].sigma, self.rows[j].h
            columns[j] = np.concatenate([s * z, s * cross(z, point - p) + h * z])
        return np.array(columns).T

    def _twists(self, q: Array) -> list[tuple[Row, Array, Array]]:
        """Of all rows, R of the link, and [ω; v] of its centre of mass for unit rates of the joints on its path."""
        poses, axes, centres = self.geometry(q)
        places = enumerate(zip(self.rows, poses, centres, strict=True))
        return [(row, A[:3, :3], self.jacobian(i, p, axes)[:, row.path]) for i, (row, A, p) in places]

    # The names of the library

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), (n, n), kg m² (revolute), kg (prismatic). ShapeError if q is not n numbers."""
        M = self._mass_matrix(self.joint_positions(q))
        return self.contracted(M + np.diag(self.armature) if self.armature.any() else M)

    def velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇, (n,), N m or N. ShapeError if an argument is not n numbers."""
        return self.contracted(self._velocity_product(self.joint_positions(q), self.joint_rates(qd)))

    def gravity_vector(self, q: ArrayLike) -> Array:
        """g(q) = ∂U/∂q, (n,), N m or N. ShapeError if q is not n numbers."""
        return self.contracted(self._gravity_vector(self.joint_positions(q)))

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """τ = M q̈ + C q̇ + g, (n,), N m or N, without friction. ShapeError if an argument is not n numbers."""
        inertial = self.mass_matrix(q) @ self._vector(qdd, "qdd", self.coordinates)
        return inertial + self.velocity_product(q, qd) + self.gravity_vector(q)

    # The results over all joints, for arguments that have been checked

    @abstractmethod
    def _mass_matrix(self, q: Array, /) -> Array: ...

    @abstractmethod
    def _velocity_product(self, q: Array, qd: Array, /) -> Array: ...

    @abstractmethod
    def _gravity_vector(self, q: Array, /) -> Array: ...

    def padded_sum(self, order: int, terms: Iterable[Any]) -> Array:
        """X_1 ‡ X_2 ‡ … of terms of the rows, (k,), (k, k), …, whose indices are the joints on the path of the row."""
        given = [np.reshape(term, [len(row.path)] * order) for row, term in zip(self.rows, terms, strict=True)]
        total = np.full([len(self.rows)] * order, 0.0, dtype=np.result_type(float, *given))
        for row, term in zip(self.rows, given, strict=True):
            total[np.ix_(*[row.path] * order)] += term
        return total

    def _gravity_of(self, J_P: Sequence[Array]) -> Array:
        """−Σ_i m_i gᵀ J_Pi, from the Jacobians (3, n) of the centres of mass."""
        g = np.full(len(self.rows), 0.0)
        for row, J in zip(self.rows, J_P, strict=True):
            g = g - row.m * (self.gravity @ J)
        return g

    def _loads(self, wrenches: Wrenches) -> list[Array]:
        """The sum of the wrenches on each row, (6,), about the origin and in axes of its frame."""
        wrenches = {} if wrenches is None else wrenches
        if not isinstance(wrenches, Mapping):
            raise ShapeError(f"wrenches must map names of links to [n; f], {{link: six numbers}}; got {wrenches!r}")
        loads = [np.zeros(6) for _ in self.rows]
        for link, given in wrenches.items():
            UnknownNameError.check(link, self.places)
            wrench = numbers(given, f"the wrench on {link!r}")
            if wrench.shape != (6,):
                raise ShapeError(f"the wrench on {link!r} must have shape (6), got {wrench.shape}")
            i, T = self.places[link]
            if i >= 0:
                n, f = T[:3, :3] @ wrench[:3], T[:3, :3] @ wrench[3:]
                loads[i] = loads[i] + np.concatenate([n + cross(T[:3, 3], f), f])
        return loads


_record(Formulation)


class MatrixFormulation(Formulation):
    """A formulation that gives C(q, q̇) as a matrix."""

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇), (n, n). ShapeError if an argument is not n numbers."""
        return self.contracted(self._coriolis_matrix(self.joint_positions(q), self.joint_rates(qd)))

    def _velocity_product(self, q: Array, qd: Array, /) -> Array:
        return self._coriolis_matrix(q, qd) @ qd

    @abstractmethod
    def _coriolis_matrix(self, q: Array, qd: Array, /) -> Array: ...
