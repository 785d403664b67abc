"""Pinocchio as an outside engine: its answers in this library's order and signs, and trees built in both."""

import warnings
from importlib.metadata import files

import networkx as nx
import numpy as np
import pinocchio as pin

from screwdyn import Joint, KinematicTree, ScrewdynWarning, screw

# What Pinocchio calls these frames; its twists put the linear part first.
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


def robot(file):
    """A tree from a public URDF file, whose dirt other tests count, and the same in Pinocchio."""
    path = robot_file(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        return KinematicTree.from_urdf(path), pin.buildModelFromUrdf(path)


def reversed_halves(A):
    """Rows of a twist Jacobian from linear-first to angular-first; a single column comes as a vector."""
    A = A.reshape(6, -1)
    return np.concatenate([A[3:], A[:3]])


def se3(T):
    return pin.SE3(T[:3, :3], T[:3, 3])


JOINTS = {
    "revolute": lambda a, h: pin.JointModelRevoluteUnaligned(a),
    "prismatic": lambda a, h: pin.JointModelPrismaticUnaligned(a),
    "helical": lambda a, h: pin.JointModelHelicalUnaligned(a, h),
}
# Joints with a chart: what they are there, where our freedoms stand among theirs, and their position from ours.
GROUPS = {
    "spherical": (pin.JointModelSpherical, [0, 1, 2], lambda q: q),
    "free": (pin.JointModelFreeFlyer, [3, 4, 5, 0, 1, 2], lambda q: [*q[4:], *q[:4]]),
    "planar": (pin.JointModelPlanar, [2, 0, 1], lambda q: [*q[1:], np.cos(q[0]), np.sin(q[0])]),
}


def model_of(tree):
    """The same tree in Pinocchio: joints on their axis, welded links as inertias and frames.

    Branch after branch, because Pinocchio takes the joints of a subtree to follow one another.
    """
    model = pin.Model()
    model.gravity = pin.Motion(tree.gravity, np.zeros(3))
    carrier = {tree.base: (0, pin.SE3.Identity())}
    for parent, name in nx.dfs_edges(tree.graph, tree.base):
        edge = tree.graph.edges[parent, name]
        joint, (number, place) = edge["joint"], carrier[parent]
        place = place * se3(edge["home"])
        if joint.chart is None:
            steps = []
            for S, freedom in zip(joint.screws.T, joint.freedom_names(edge["name"]), strict=True):
                direction, point = screw.axis(S)
                one = JOINTS[Joint(S).kind](direction, float(screw.pitch(S)))
                steps.append((one, pin.SE3(np.eye(3), point), freedom))
        else:
            steps = [(GROUPS[joint.kind][0](), pin.SE3(joint.chart.axes, joint.chart.center), edge["name"])]
        for kind, shift, freedom in steps:
            number = model.addJoint(number, kind, place * shift, freedom)
            place = shift.inverse()
        carrier[name] = number, place
        inertia = tree.link(name).inertia
        if inertia is not None:
            model.appendBodyToJoint(number, pin.Inertia(inertia.mass, inertia.com, inertia.tensor), place)
        model.addFrame(pin.Frame(name, number, place, pin.FrameType.BODY))
    return model


class Engine:
    """Pinocchio's answers over a tree's coordinates.

    Parameters
    ----------
    model : pinocchio.Model
    tree : KinematicTree
        Its joints are joints of the model: those with a chart by the joint's name, others by those of their freedoms.
    """

    def __init__(self, model, tree):
        self.model, self.data = model, model.createData()
        self.order, self._positions = [], []
        for link in tree.links[1:]:
            edge = tree.graph.edges[tree.parent(link), link]
            joint, name = edge["joint"], edge["name"]
            names = joint.freedom_names(name) if joint.chart is None else (name,)
            _, freedoms, position = GROUPS.get(joint.kind, (None, [0], list))
            for theirs in [model.joints[model.getJointId(name)] for name in names if joint.nv]:
                self.order += [theirs.idx_v + i for i in freedoms]
                self._positions.append((theirs.idx_q, theirs.nq, joint.nq if joint.chart else 1, position))
        assert sorted(self.order) == list(range(model.nv))

    def position(self, q):
        """Their positions at ours."""
        theirs, at = np.empty(self.model.nq), 0
        for first, count, ours, position in self._positions:
            x = position(q[at : at + ours])
            theirs[first : first + count] = x if count == len(x) else (np.cos(x[0]), np.sin(x[0]))  # a continuous joint
            at += ours
        return theirs

    def velocity(self, v):
        theirs = np.empty(self.model.nv)
        theirs[self.order] = v
        return theirs

    def matrix(self, A):
        return A[np.ix_(self.order, self.order)]

    def mass_matrix(self, q):
        return self.matrix(pin.crba(self.model, self.data, self.position(q), pin.Convention.WORLD))

    def coriolis_matrix(self, q, qd):
        return self.matrix(pin.computeCoriolisMatrix(self.model, self.data, self.position(q), self.velocity(qd)))

    def gravity_vector(self, q):
        return pin.computeGeneralizedGravity(self.model, self.data, self.position(q))[self.order]

    def inverse_dynamics(self, q, qd, qdd):
        return pin.rnea(self.model, self.data, self.position(q), self.velocity(qd), self.velocity(qdd))[self.order]

    def forward_dynamics(self, q, qd, tau):
        return pin.aba(self.model, self.data, self.position(q), self.velocity(qd), self.velocity(tau))[self.order]

    def kinetic_energy(self, q, qd):
        return pin.computeKineticEnergy(self.model, self.data, self.position(q), self.velocity(qd))

    def potential_energy(self, q):
        return pin.computePotentialEnergy(self.model, self.data, self.position(q))

    def momentum(self, q, qd):
        """About the base's origin, not about the centre of mass as theirs is."""
        pin.computeCentroidalMomentum(self.model, self.data, self.position(q), self.velocity(qd))
        n, f = self.data.hg.angular, self.data.hg.linear
        return np.concatenate([n + np.cross(self.data.com[0], f), f])

    def kinematics(self, q, qd):
        """Everything that :meth:`pose`, :meth:`jacobian` and :meth:`jacobian_dot` read."""
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.position(q), self.velocity(qd))
        pin.updateFramePlacements(self.model, self.data)

    def pose(self, link):
        return self.data.oMf[self.model.getFrameId(link, pin.FrameType.BODY)].homogeneous

    def jacobian(self, link, frame):
        number = self.model.getFrameId(link, pin.FrameType.BODY)
        return reversed_halves(pin.getFrameJacobian(self.model, self.data, number, FRAMES[frame]))[:, self.order]

    def jacobian_dot(self, link):
        """In the base frame, where it is the entry-by-entry rate; theirs is another one in moving axes."""
        number = self.model.getFrameId(link, pin.FrameType.BODY)
        rate = pin.getFrameJacobianTimeVariation(self.model, self.data, number, FRAMES["base"])
        return reversed_halves(rate)[:, self.order]
