import warnings
from pathlib import Path

import numpy as np
import pytest
from film import node_of

import screwdyn as sd
from screwdyn.views.scene import shape_solids, still

GREY, RED = (0.5, 0.5, 0.5, 1.0), (1.0, 0.0, 0.0, 0.5)
SLANTED = sd.screw.exp([0.3, -0.2, 0.5, 0.1, 0.2, 0.3])


def extent(solid):
    return np.ptp(solid.placed(sd.screw.inverse(SLANTED)).vertices, axis=0)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (sd.Shape.box((1, 2, 3), pose=SLANTED), (1, 2, 3)),
        (sd.Shape.sphere(0.5, pose=SLANTED), (1, 1, 1)),
        (sd.Shape.cylinder(0.5, 3, pose=SLANTED), (1, 1, 3)),
        (sd.Shape.capsule(0.5, 3, pose=SLANTED), (1, 1, 4)),
    ],
)
def test_simple_shapes_have_their_size_and_pose(shape, size) -> None:
    (solid,) = shape_solids(shape, GREY)
    np.testing.assert_allclose(extent(solid), size, rtol=0.01)
    assert solid.color == GREY


def tetrahedron(path: Path) -> Path:
    corners = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f 1 3 2", "f 1 2 4", "f 2 3 4", "f 1 4 3"]
    path.write_text("\n".join(lines))
    return path


def test_meshes_are_scaled_placed_and_coloured(tmp_path) -> None:
    shape = sd.Shape.mesh(tetrahedron(tmp_path / "a.obj"), 0.5, pose=SLANTED, color=RED)
    (solid,) = shape_solids(shape, GREY)
    np.testing.assert_allclose(extent(solid), (0.5, 1.0, 1.5))
    assert solid.color == RED and len(solid.faces) == 4


def test_triangles_of_stl_share_their_vertices(tmp_path) -> None:
    facets = []
    for face in [((0, 0, 0), (0, 2, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0), (0, 0, 3))]:
        corners = "\n".join(f"vertex {x} {y} {z}" for x, y, z in face)
        facets.append(f"facet normal 0 0 1\nouter loop\n{corners}\nendloop\nendfacet")
    path = tmp_path / "a.stl"
    path.write_text("solid a\n" + "\n".join(facets) + "\nendsolid a\n")
    (solid,) = shape_solids(sd.Shape.mesh(path), GREY)
    assert len(solid.vertices) == 4 and len(solid.faces) == 2 and solid.color == GREY
    broken = tmp_path / "nan.stl"
    broken.write_text(path.read_text().replace("vertex 0 0 3", "vertex 0 0 nan"))
    with pytest.raises(sd.ScrewdynError, match="not finite"):
        [*shape_solids(sd.Shape.mesh(broken), GREY)]
    path.write_text("no mesh")
    with pytest.raises(sd.ScrewdynError, match=r"cannot read the mesh '.*a.stl'"):
        [*shape_solids(sd.Shape.mesh(path), GREY)]


def test_visual_shapes_replace_the_grown_body_and_missing_meshes_do_not(tmp_path) -> None:
    tree = sd.KinematicTree()
    body = sd.Inertia.box(100.0, (0.1, 0.1, 0.1))
    plate = sd.Shape.box((3.0, 0.01, 0.01), color=RED)
    tree.attach(body, to="base", name="plain", shape=[plate, sd.Shape.sphere(9.0, use="collision")])
    tree.attach(body, to="base", name="lost", shape=sd.Shape.mesh(tmp_path / "none.stl"))
    with pytest.warns(
        sd.ScrewdynWarning, match=r"'lost' is drawn without its shapes: cannot read the mesh '.*none.stl'"
    ):
        scene = still(tree, np.zeros(0))
    (part,) = node_of(scene, "plain").parts
    assert [solid.color for solid in part.solids] == [RED]
    assert np.ptp(node_of(scene, "lost").parts[0].solids[0].vertices) == pytest.approx(0.1)


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="paint"><profile_COMMON><technique sid="t"><lambert><diffuse><color>0.2 0.4 0.8 1</color>
</diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="blue"><instance_effect url="#paint"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="a" count="9">0 0 0 1 0 0 0 2 3</float_array><technique_common>
<accessor source="#a" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles count="1" material="m"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node><instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="m" target="#blue"/></technique_common></bind_material></instance_geometry></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


@pytest.mark.parametrize(
    ("vertex", "scale", "drawn"), [(1.0, 0.5, True), (1.0, 1000.0, False), (1e30, 1.0, False), (1e300, 1e10, False)]
)
def test_shapes_whose_units_look_wrong_are_not_drawn(tmp_path, vertex, scale, drawn) -> None:
    path = tetrahedron(tmp_path / "a.obj")
    path.write_text(path.read_text().replace("v 1 0 0", f"v {vertex} 0 0"))
    tree = sd.robots.two_link()
    tree.set_shapes("link1", sd.Shape.mesh(path, scale))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scene = still(tree, np.zeros(2))
    assert (len(node_of(scene, "link1").parts[0].solids[0].faces) == 4) == drawn
    words = "units look wrong; a mesh in millimetres needs the scale 0.001"
    assert [words in str(warning.message) for warning in said] == [True] * (not drawn)


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning:collada")
def test_collada_files_have_the_colours_of_their_materials(tmp_path) -> None:
    path = tmp_path / "plate.dae"
    path.write_text(COLLADA)
    (solid,) = shape_solids(sd.Shape.mesh(path, (1, 1, 2), pose=SLANTED), GREY)
    np.testing.assert_allclose(extent(solid), (1, 2, 6), rtol=1e-6)
    np.testing.assert_allclose(solid.color, (0.2, 0.4, 0.8, 1.0), atol=0.01)
