"""MuJoCo as a second independent engine: the same trees, and its results in this library's freedoms.

Its velocities are those of its joints, which for a free joint are the body's angular velocity in its own axes and the
linear velocity of its origin in the world's. Here both are in the body's axes: u = T ν.
"""

import mujoco
import numpy as np

from screwdyn import screw

ANCHORED = {"revolute": "hinge", "prismatic": "slide"}


def _numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _quaternion(R):
    """Scalar first."""
    out = np.empty(4)
    mujoco.mju_mat2Quat(out, np.ravel(R))
    return out


def _product(a, b):
    out = np.empty(4)
    mujoco.mju_mulQuat(out, a, b)
    return out


def _joints(joint, name):
    if joint.kind == "free":
        yield f'<freejoint name="{name}"/>'
    elif joint.kind == "spherical":
        yield f'<joint name="{name}" type="ball" pos="{_numbers(joint.chart.center)}"/>'
    else:
        for freedom, S in zip(joint.freedom_names(name), joint.screws.T, strict=True):
            kind = "slide" if not S[:3].any() else "hinge"
            axis, point = screw.axis(S)
            yield f'<joint name="{freedom}" type="{kind}" axis="{_numbers(axis)}" pos="{_numbers(point)}"/>'


def _body(tree, name):
    lines = []
    inertia = tree.link(name).inertia
    if inertia is not None:
        I = inertia.tensor
        six = I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]
        lines.append(f'<inertial pos="{_numbers(inertia.com)}" mass="{inertia.mass!r}" fullinertia="{_numbers(six)}"/>')
    for child in tree.graph.successors(name):
        edge = tree.graph.edges[name, child]
        home = edge["home"]
        lines += [
            f'<body name="{child}" pos="{_numbers(home[:3, 3])}" quat="{_numbers(_quaternion(home[:3, :3]))}">',
            *_joints(edge["joint"], edge["name"]),
            *_body(tree, child),
            "</body>",
        ]
    return lines


class Mujoco:
    """MuJoCo's results over a tree's coordinates.

    Parameters
    ----------
    tree : KinematicTree
        Its base has no mass, free joints hang on the base, and every link that moves has a body.
    """

    def __init__(self, tree):
        text = f"""<mujoco><compiler angle="radian" balanceinertia="false"/>
            <option gravity="{_numbers(tree.gravity)}"><flag energy="enable" contact="disable"/></option>
            <worldbody>{"".join(_body(tree, tree.base))}</worldbody></mujoco>"""
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data, self.tree, self.order, self.free = mujoco.MjData(self.model), tree, [], []
        edges = {edge["name"]: edge for *_, edge in tree.graph.edges(data=True)}
        q0 = v0 = 0
        self.positions = []
        for name in tree.joints:
            joint, home = edges[name]["joint"], edges[name]["home"]
            for freedom in joint.freedom_names(name) if joint.chart is None else [name]:
                there = self.model.joint(freedom)
                nq, nv = (1, 1) if joint.chart is None else (joint.nq, joint.nv)
                self.positions.append((joint.kind, slice(q0, q0 + nq), int(there.qposadr[0]), home))
                start = int(there.dofadr[0])
                if joint.kind == "free":
                    self.free.append((v0, q0, home[:3, :3]))
                    self.order += [*range(start + 3, start + 6), *range(start, start + 3)]
                else:
                    self.order += range(start, start + nv)
                q0, v0 = q0 + nq, v0 + nv

    def set(self, q, v):
        """Set a state and compute all results."""
        self.T, self.T_dot = np.eye(self.tree.nv), np.zeros((self.tree.nv, self.tree.nv))
        for kind, part, at, home in self.positions:
            x = q[part]
            if kind == "free":
                self.data.qpos[at : at + 3] = home[:3, 3] + home[:3, :3] @ x[4:]
                self.data.qpos[at + 3 : at + 7] = _product(_quaternion(home[:3, :3]), np.roll(x[:4], 1))
            elif kind == "spherical":
                self.data.qpos[at : at + 4] = np.roll(x, 1)
            else:
                self.data.qpos[at] = x[0]
        for v0, q0, home in self.free:
            R = np.empty(9)
            mujoco.mju_quat2Mat(R, np.roll(q[q0 : q0 + 4], 1))
            R = home @ R.reshape(3, 3)
            self.T[v0 + 3 : v0 + 6, v0 + 3 : v0 + 6] = R
            self.T_dot[v0 + 3 : v0 + 6, v0 + 3 : v0 + 6] = R @ screw.skew(v[v0 : v0 + 3])
        self.v = v
        self.data.qvel[self.order] = self.T @ v
        mujoco.mj_forward(self.model, self.data)

    def _matrix(self):
        M = np.empty((self.tree.nv, self.tree.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.order, self.order)]

    def mass_matrix(self):
        return self.T.T @ self._matrix() @ self.T

    def inverse_dynamics(self, a):
        """From MuJoCo's M and bias force, for the accelerations of its velocities."""
        u_dot = self.T @ a + self.T_dot @ self.v
        return self.T.T @ (self._matrix() @ u_dot + self.data.qfrc_bias[self.order])

    def energies(self):
        """Potential and kinetic."""
        return tuple(self.data.energy)

    def pose(self, link):
        body = self.data.body("world" if link == self.tree.base else link)
        return screw.pose(body.xmat.reshape(3, 3), body.xpos)

    def jacobian(self, link):
        """Link's origin, base axes: the frame "mixed"."""
        linear, angular = np.empty((2, 3, self.tree.nv))
        body = self.model.body("world" if link == self.tree.base else link)
        mujoco.mj_jacBody(self.model, self.data, linear, angular, body.id)
        return np.concatenate([angular, linear])[:, self.order] @ self.T

    def center_of_mass(self):
        return self.data.subtree_com[0]

    def center_of_mass_jacobian(self):
        J = np.empty((3, self.tree.nv))
        mujoco.mj_jacSubtreeCom(self.model, self.data, J, 0)
        return J[:, self.order] @ self.T

    def centroidal_momentum_matrix(self):
        angular = np.empty((3, self.tree.nv))
        mujoco.mj_angmomMat(self.model, self.data, angular, 0)
        linear = self.tree.mass * self.center_of_mass_jacobian()
        return np.concatenate([angular[:, self.order] @ self.T, linear])
