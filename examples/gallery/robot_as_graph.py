"""
A robot as a graph
==================

``tree.graph`` is a NetworkX graph. Two trees with the same torso are composed into a robot with two arms; attributes
select links and joints; and the ancestors in the graph say which entries of the mass matrix are zero.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import screwdyn as sd

torso = sd.Link("torso", sd.Inertia.cylinder(20, 0.2, 0.8, com=(0, 0, 0.4)))
crate = sd.Inertia.box(3, (0.3, 0.2, 0.2), com=(0.1, -0.3, 0))  # below its hook, off its centre
sides = []
for prefix, y in (("left/", 0.3), ("right/", -0.3)):
    tree = sd.KinematicTree("floor")
    tree.attach(torso, to="floor", joint=sd.revolute("z", name="waist"))
    tree.attach(sd.robots.panda(), to="torso", at=(0, y, 0.8), prefix=prefix)
    tree.attach(crate, to=f"{prefix}panda_link8", joint=sd.revolute("x", passive=True), name=f"{prefix}crate")
    sides.append(tree)
robot = sd.KinematicTree.from_graph(nx.compose(*(tree.graph for tree in sides)))

# %%
# The graph has all that the tree has: nodes have ``link``, edges ``joint``.
graph = robot.graph
masses = {name: link.inertia.mass if link.inertia else 0 for name, link in graph.nodes(data="link")}
moving = {child: joint for _, child, joint in graph.edges(data="joint") if joint.nv}
passive = [name for name, joint in moving.items() if joint.passive]
print(len(moving), "joints move; passive:", passive)
path = nx.shortest_path(graph, "floor", "left/crate")

# %%
# An entry of M is zero unless one of its joints carries the other: unless it is an edge of the transitive closure.
carried = nx.to_numpy_array(nx.transitive_closure_dag(graph), nodelist=list(moving)) > 0
pattern = carried | carried.T | np.eye(robot.nv, dtype=bool)
M = robot.mass_matrix(robot.random_configuration(np.random.default_rng(0)))
print("M has the pattern of the graph:", ((np.abs(M) > 1e-12) == pattern).all())

# %%
plt.style.use("petroff10")
figure, (drawing, entries) = plt.subplots(1, 2, figsize=(11, 5.5), width_ratios=(1.6, 1), layout="constrained")
place = nx.bfs_layout(graph, robot.base, align="horizontal")
colors = ["C2" if name in passive else "C0" if name in moving else "0.7" for name in graph]
widths = [4 if edge in nx.utils.pairwise(path) else 1 for edge in graph.edges]
nx.draw(graph, place, drawing, node_size=[40 + 25 * masses[x] for x in graph], node_color=colors, width=widths)
for name, (x, y) in place.items():
    drawing.annotate(name, (x, y), (18, 0), "data", "offset points", va="center")
drawing.margins(x=0.3)
drawing.set_title("joints with a motor (blue), passive (red), fixed (grey)")
entries.spy(pattern, marker="s", markersize=11)
entries.set(
    xticks=range(robot.nv),
    yticks=range(robot.nv),
    title="entries of M that are not zero",
    yticklabels=robot.coordinates,
)
plt.show()
