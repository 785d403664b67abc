"""Pinocchio as an independent engine: its results in this library's order and signs, and trees built in both."""

import re
import warnings
from importlib.metadata import files
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pinocchio as pin

from screwdyn import Joint, KinematicTree, ScrewdynWarning, screw

# Names of these frames in Pinocchio, whose twists have the linear part first.
FRAMES = {
    "body": pin.ReferenceFrame.LOCAL,
    "base": pin.ReferenceFrame.WORLD,
    "mixed": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def robot_file(ending):
    """Path of the one URDF file of example-robot-data whose path ends so."""
    found = [file for file in files("example-robot-data") if str(file).endswith(f"/{ending}")]
    assert len(found) == 1, f"{ending} stands for {found}"
    return str(found[0].locate())


def robot(file, floating=False):
    """A tree from a public URDF file, without warnings, and the same in Pinocchio, which ignores <mimic> by default."""
    path = robot_file(file)
    text = re.sub(r"<mimic\b[^>]*/>", "", Path(path).read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        if floating:
            tree = KinematicTree.from_urdf(text, floating_base=True)
            return tree, pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
        return KinematicTree.from_urdf(text), pin.buildModelFromUrdf(path)


def angular_first(A):
    """Twists, wrenches, or the rows of a twist Jacobian, from linear-first to angular-first."""
    return np.concatenate([A[3:], A[:3]])


def se3(T):
    return pin.SE3(T[:3, :3], T[:3, 3])


ROWS = {
    "revolute": lambda a, h: pin.JointModelRevoluteUnaligned(a),
    "prismatic": lambda a, h: pin.JointModelPrismaticUnaligned(a),
    "helical": lambda a, h: pin.JointModelHelicalUnaligned(a, h),
}
GROUPS = {
    "spherical": pin.JointModelSpherical,
    "free": pin.JointModelFreeFlyer,
    "planar": pin.JointModelPlanar,
}
# Indices of our freedoms in Pinocchio, and its coordinates as functions of ours.
ORDER = {"spherical": [0, 1, 2], "free": [3, 4, 5, 0, 1, 2], "planar": [2, 0, 1]}
COORDINATES = {
    "spherical": lambda q: q,
    "free": lambda q: np.concatenate([q[4:], q[:4]]),
    "planar": lambda q: np.array([q[1], q[2], np.cos(q[0]), np.sin(q[0])]),
}


def _joints(joint, name):
    """A joint in Pinocchio: for each of its joints there the name, the model, and the frame in the link."""
    if joint.chart is not None:
        yield name, GROUPS[joint.kind](), pin.SE3(joint.chart.axes, joint.chart.center)
        return
    for freedom, S in zip(joint.freedom_names(name), joint.screws.T, strict=True):
        direction, point = screw.axis(S)
        yield freedom, ROWS[Joint(S).kind](direction, float(screw.pitch(S))), pin.SE3(np.eye(3), point)


def model_of(tree, only=None):
    """The same tree in Pinocchio: joints on their axis, welded links as inertias and frames.

    Branch by branch, because Pinocchio requires the joints of a subtree to be consecutive. A joint of several
    screws in a row is several joints there. Given ``only``, all other links are massless.
    """
    model = pin.Model()
    model.gravity = pin.Motion(tree.gravity, np.zeros(3))
    carrier = {tree.base: (0, pin.SE3.Identity())}
    for parent, name in [(None, tree.base), *nx.dfs_edges(tree.graph, tree.base)]:
        if parent is not None:
            edge = tree.graph.edges[parent, name]
            number, place = carrier[parent]
            place = place * se3(edge["home"])
            for freedom, kind, frame in _joints(edge["joint"], edge["name"]):
                number = model.addJoint(number, kind, place * frame, freedom)
                place = frame.inverse()
            carrier[name] = number, place
        number, place = carrier[name]
        inertia = tree.link(name).inertia
        if inertia is not None and only in (None, name):
            model.appendBodyToJoint(number, pin.Inertia(inertia.mass, inertia.com, inertia.tensor), place)
        model.addFrame(pin.Frame(name, number, place, pin.FrameType.BODY))
    return model


class Engine:
    """Pinocchio's results over a tree's coordinates.

    Parameters
    ----------
    model : pinocchio.Model
    tree : KinematicTree
        Its joints are joints of the model; a free joint on the base may be called ``root_joint`` there.
    """

    def __init__(self, model, tree):
        self.model, self.data, self.tree = model, model.createData(), tree
        self.parts, self.order, q0 = [], [], 0
        for name in tree.joints:
            joint = next(edge["joint"] for *_, edge in tree.graph.edges(data=True) if edge["name"] == name)
            if joint.chart is not None:
                theirs = [name if model.existJointName(name) else "root_joint"]
                own = [(joint.nq, COORDINATES[joint.kind], ORDER[joint.kind])]
            else:
                theirs, own = joint.freedom_names(name), [(1, None, [0])] * joint.nv
            for at, (nq, coordinates, order) in zip(theirs, own, strict=True):
                there = model.joints[model.getJointId(at)]
                assert there.nv == len(order)
                self.parts.append((slice(q0, q0 + nq), there, coordinates))
                self.order += [there.idx_v + i for i in order]
                q0 += nq
        assert sorted(self.order) == list(range(model.nv))

    def position(self, q):
        """A continuous joint counts as (cos, sin) there."""
        theirs = np.empty(self.model.nq)
        for part, joint, coordinates in self.parts:
            x = q[part]
            if coordinates is not None:
                x = coordinates(x)
            elif joint.nq == 2:
                x = np.cos(x[0]), np.sin(x[0])
            theirs[joint.idx_q : joint.idx_q + joint.nq] = x
        return theirs

    def velocity(self, v):
        theirs = np.empty(self.model.nv)
        theirs[self.order] = v
        return theirs

    def matrix(self, A):
        return A[np.ix_(self.order, self.order)]

    # Dynamics

    def mass_matrix(self, q):
        return self.matrix(pin.crba(self.model, self.data, self.position(q), pin.Convention.WORLD))

    def coriolis_matrix(self, q, qd):
        return self.matrix(pin.computeCoriolisMatrix(self.model, self.data, self.position(q), self.velocity(qd)))

    def gravity_vector(self, q):
        return pin.computeGeneralizedGravity(self.model, self.data, self.position(q))[self.order]

    def bias_force(self, q, qd):
        return pin.nonLinearEffects(self.model, self.data, self.position(q), self.velocity(qd))[self.order]

    def inverse_dynamics(self, q, qd, qdd):
        return pin.rnea(self.model, self.data, self.position(q), self.velocity(qd), self.velocity(qdd))[self.order]

    def kinetic_energy(self, q, qd):
        return pin.computeKineticEnergy(self.model, self.data, self.position(q), self.velocity(qd))

    def potential_energy(self, q):
        return pin.computePotentialEnergy(self.model, self.data, self.position(q))

    def momentum(self, q, qd):
        """About the base's origin; Pinocchio's is about the centre of mass."""
        pin.computeCentroidalMomentum(self.model, self.data, self.position(q), self.velocity(qd))
        n, f = self.data.hg.angular, self.data.hg.linear
        return np.concatenate([n + np.cross(self.data.com[0], f), f])

    # Centre of mass: Pinocchio does not include bodies welded to the base, which are added here.

    def centroid(self, q, qd, qdd):
        """Centre of mass, its velocity, Jacobian and bias acceleration; centroidal momentum, its matrix and rates."""
        model, data = self.model, self.data
        p, u, b = self.position(q), self.velocity(qd), self.velocity(qdd)
        moving = pin.computeTotalMass(model)
        share = moving / self.tree.mass
        still = model.inertias[0]
        pin.centerOfMass(model, data, p, u, 0 * b)
        c, v, bias = (np.array(x[0]) for x in (data.com, data.vcom, data.acom))
        center = share * c + (1 - share) * (still.lever if share < 1 else 0)
        # A single column comes without its axis.
        jacobian = pin.jacobianCenterOfMass(model, data, p).reshape(3, -1)[:, self.order]
        pin.computeCentroidalMapTimeVariation(model, data, p, u)
        A, A_dot = (angular_first(x.reshape(6, -1))[:, self.order] for x in (data.Ag, data.dAg))
        pin.computeCentroidalMomentumTimeVariation(model, data, p, u, b)
        h, h_dot = angular_first(data.hg.vector), angular_first(data.dhg.vector)
        lever, rate = screw.skew(c - center), screw.skew((1 - share) * v)
        A_dot[:3] += lever @ A_dot[3:] + rate @ A[3:]
        h_dot[:3] += lever @ h_dot[3:] + rate @ h[3:]
        A[:3] += lever @ A[3:]
        h[:3] += lever @ h[3:]
        return SimpleNamespace(
            center_of_mass=center,
            center_of_mass_velocity=share * v,
            center_of_mass_jacobian=share * jacobian,
            center_of_mass_bias_acceleration=share * bias,
            centroidal_momentum=h,
            centroidal_momentum_matrix=A,
            centroidal_momentum_matrix_dot=A_dot,
            centroidal_momentum_rate=h_dot,
        )

    # Links

    def kinematics(self, q, qd, qdd):
        """Everything that the functions of links below read."""
        p, u, b = self.position(q), self.velocity(qd), self.velocity(qdd)
        pin.forwardKinematics(self.model, self.data, p, u, b)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, p, u)
        pin.updateFramePlacements(self.model, self.data)
        self.inverse = None

    def frame(self, link):
        if link == self.tree.base and not self.model.existFrame(link, pin.FrameType.BODY):
            return self.model.getFrameId("universe")
        return self.model.getFrameId(link, pin.FrameType.BODY)

    def pose(self, link):
        return self.data.oMf[self.frame(link)].homogeneous

    def place(self, link, frame):
        """The matrix that changes a twist from the link's frame to `frame`, (6, 6), and its rate."""
        inertia, V = self.tree.link(link).inertia, self.twist(link, "body")
        X, X_dot = np.eye(6), np.zeros((6, 6))
        if frame == "com" and inertia is not None:
            X[3:, :3] = -screw.skew(inertia.com)
        if frame in ("base", "mixed"):
            T = self.pose(link)
            R, R_dot = T[:3, :3], T[:3, :3] @ screw.skew(V[:3])
            X[:3, :3] = X[3:, 3:] = R
            X_dot[:3, :3] = X_dot[3:, 3:] = R_dot
        if frame == "base":
            p, p_dot = screw.skew(T[:3, 3]), screw.skew(R @ V[3:])
            X[3:, :3] = p @ R
            X_dot[3:, :3] = p_dot @ R + p @ R_dot
        return X, X_dot

    def jacobian(self, link, frame):
        if frame == "com":
            return self.place(link, frame)[0] @ self.jacobian(link, "body")
        J = pin.getFrameJacobian(self.model, self.data, self.frame(link), FRAMES[frame])
        return angular_first(J.reshape(6, -1))[:, self.order]

    def jacobian_dot(self, link, frame):
        """Entry by entry. So is Pinocchio's in the link's frame; that in other axes is not used."""
        J_dot = pin.getFrameJacobianTimeVariation(self.model, self.data, self.frame(link), FRAMES["body"])
        X, X_dot = self.place(link, frame)
        return X @ angular_first(J_dot.reshape(6, -1))[:, self.order] + X_dot @ self.jacobian(link, "body")

    def twist(self, link, frame):
        if frame == "com":
            return self.place(link, frame)[0] @ self.twist(link, "body")
        return angular_first(pin.getFrameVelocity(self.model, self.data, self.frame(link), FRAMES[frame]).vector)

    def acceleration(self, link, frame):
        """The rate of the twist, entry by entry."""
        A = pin.getFrameAcceleration(self.model, self.data, self.frame(link), FRAMES["body"])
        X, X_dot = self.place(link, frame)
        return X @ angular_first(A.vector) + X_dot @ self.twist(link, "body")

    def mobility(self, link, frame, q):
        """J M⁻¹ Jᵀ, the inverse of the operational-space inertia; Pinocchio does not compute M⁻¹ from M."""
        if self.inverse is None:
            minv = pin.computeMinverse(self.model, self.data, self.position(q))
            self.inverse = self.matrix(np.triu(minv) + np.triu(minv, 1).T)
        J = self.jacobian(link, frame)
        return J @ self.inverse @ J.T
