"""Poses of the rows of a table, and changes of frame between a row and its parent.

The rows of a group joint have one origin, and the x, y and z axes of each are the y, z and x axes of the row before it.
Within such a joint a change of frame only renames components.
"""

from .link_steps import (
    compose,
    coriolis_to_parent,
    inertia_to_parent,
    joint_pose,
    moment_to_parent,
    twist_to_child,
    wrench_to_parent,
)
from .spatial import (
    AT_REST,
    CoriolisTensor,
    MassMoment,
    Pose,
    RigidInertia,
    Twist,
    Vector,
    Wrench,
    rotate,
    rotate_back,
)
from .table import (
    Table,
    Workspace,
    begins_joint,
    home,
    joint_screw,
    load_pose,
    load_twist,
    store_pose,
)

# Pose of a row of a group joint in the row before it.
RENAMING = Pose((0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0))


def renamed(a: Vector) -> Vector:
    """A vector in the frame of the next row of a group joint."""
    return (a[1], a[2], a[0])


def renamed_back(a: Vector) -> Vector:
    """A vector in the frame of the former row of a group joint."""
    return (a[2], a[0], a[1])


def row_pose(table: Table, i: int, q: Table, work: Workspace) -> Pose:
    """Pose of row i's frame in its parent's."""
    if begins_joint(work, i):
        return joint_pose(home(table, i), joint_screw(table, i), q[i])
    return RENAMING


def store_row_pose(table: Table, i: int, q: Table, work: Workspace) -> None:
    """Write the pose of row i in its parent, if it is the first row of its joint; those of the others are constant."""
    if begins_joint(work, i):
        store_pose(work.poses, i, row_pose(table, i, q, work))


def store_poses(table: Table, q: Table, work: Workspace) -> None:
    """Write the poses of the first rows of all joints in their parents."""
    for i in range(table.shape[0] - 1):
        store_row_pose(table, i, q, work)


def store_poses_on_path(table: Table, row: int, q: Table, work: Workspace) -> None:
    """Write the poses of the first rows of the joints on the path to a row in their parents."""
    i = row
    while i >= 0:
        store_row_pose(table, i, q, work)
        i = work.parents[i]


def in_next_frame(T: Pose) -> Pose:
    """Pose of the frame of the next row of a group joint, from that of a row, both in the same frame."""
    R, p = T
    return Pose((R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6]), p)


def pose_in_parent(work: Workspace, i: int, X: Pose) -> Pose:
    """Pose in the frame of row i's parent of a frame with pose X in row i's."""
    if begins_joint(work, i):
        return compose(load_pose(work.poses, i), X)
    R, p = X
    return Pose((R[6], R[7], R[8], R[0], R[1], R[2], R[3], R[4], R[5]), renamed_back(p))


def twist_of_parent(work: Workspace, i: int, former: Twist) -> Twist:
    """The twist of row i's parent in row i's frame; ``former`` is that of row i − 1."""
    if begins_joint(work, i):
        k = work.parents[i]
        return AT_REST if k < 0 else twist_to_child(load_pose(work.poses, i), load_twist(work.twists, k))
    return Twist(renamed(former.w), renamed(former.v))


def vector_of_parent(work: Workspace, i: int, a: Vector) -> Vector:
    """A vector in the frame of row i's parent in that of row i."""
    if begins_joint(work, i):
        return rotate_back(load_pose(work.poses, i).R, a)
    return renamed(a)


def vector_in_parent(work: Workspace, i: int, a: Vector) -> Vector:
    """A vector in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return rotate(load_pose(work.poses, i).R, a)
    return renamed_back(a)


def wrench_in_parent(work: Workspace, i: int, F: Wrench) -> Wrench:
    """A wrench in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return wrench_to_parent(load_pose(work.poses, i), F)
    return Wrench(renamed_back(F.n), renamed_back(F.f))


def moment_before_joint(work: Workspace, i: int, moment: MassMoment) -> MassMoment:
    """A first moment in the frame of row i, which carries a link, in that of the parent of its joint.

    A group joint has 3 or 6 rows, so the axes of its first row follow those of its last.
    """
    first, (m, h) = work.firsts[i], moment
    return moment_to_parent(load_pose(work.poses, first), MassMoment(m, h if first == i else renamed(h)))


def inertia_in_parent(work: Workspace, i: int, inertia: RigidInertia) -> RigidInertia:
    """A rigid inertia in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return inertia_to_parent(load_pose(work.poses, i), inertia)
    m, h, I = inertia
    return RigidInertia(m, renamed_back(h), (I[5], I[2], I[4], I[0], I[1], I[3]))


def coriolis_in_parent(work: Workspace, i: int, B: CoriolisTensor) -> CoriolisTensor:
    """A Coriolis tensor in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return coriolis_to_parent(load_pose(work.poses, i), B)
    K, P = B
    return CoriolisTensor((K[8], K[6], K[7], K[2], K[0], K[1], K[5], K[3], K[4]), renamed_back(P))
