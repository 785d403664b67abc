"""URDF reader: the shapes of links. All their problems are warnings, because the motion does not depend on them."""

from __future__ import annotations

from collections.abc import Mapping

from screwdyn.core.errors import ShapeError
from screwdyn.io.document import shown
from screwdyn.io.meshes import Meshes
from screwdyn.io.urdf_origin import origin_of
from screwdyn.io.urdf_xml import Element, Report
from screwdyn.mechanism.shape import Kind, Shape, Use

__all__ = ["ShapeReader"]

_LEFT_OUT = "the shape is left out"
# Attributes that are the sizes of a shape, with the number of numbers in each.
_SIZES: dict[Kind, dict[str, int]] = {
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
    "mesh": {"scale": 3},
}
_LISTED = 8


class ShapeReader:
    """Reads the visual and collision elements of the links of a robot.

    Parameters
    ----------
    robot : Element
        The root. A material may be named in any link, also one that another link defines.
    meshes : Meshes
        Finds the files of meshes.
    report : Report
        Receives the problems.
    """

    def __init__(self, robot: Element, meshes: Meshes, report: Report) -> None:
        self.meshes, self.report = meshes, report
        self._missing: dict[str, Element] = {}
        self._found: dict[str, str] = {}
        links = [shape for link in robot.named("link") for shape in link.children]
        materials = [material for owner in (robot, *links) for material in owner.named("material")]
        self._own = {material: self._color(material) for material in materials}
        self._named: dict[str, tuple[float, ...]] = {}
        for material, color in self._own.items():
            name = material.attributes.get("name")
            if name and color is not None:
                self._named.setdefault(name, color)

    def shapes(self, link: Element) -> tuple[Shape, ...]:
        """The shapes of a link in the order of the file; those with a problem are left out."""
        uses: Mapping[str, Use] = {"visual": "visual", "collision": "collision"}
        found = [self._shape(child, uses[child.tag]) for child in link.children if child.tag in uses]
        return tuple(shape for shape in found if shape is not None)

    def report_missing(self) -> None:
        """Add one warning that names all meshes without a file."""
        if self._missing:
            names = list(self._missing)
            listed = ", ".join(shown(name, 200) for name in names[:_LISTED]) + ", …" * (len(names) > _LISTED)
            count = "the mesh is" if len(names) == 1 else f"{len(names)} meshes are"
            hint = "name the folders of packages by package_dirs=…, or in the environment variable ROS_PACKAGE_PATH"
            self.report.add(self._missing[names[0]], f"{count} missing: {listed}", hint, "warning")

    def _shape(self, element: Element, use: Use) -> Shape | None:
        pose = origin_of(element, self.report, "warning")
        bodies = [body for geometry in element.named("geometry") for body in geometry.children]
        if len(bodies) != 1:
            found = "several bodies" if bodies else f"none of {', '.join(_SIZES)}"
            self.report.add(element, f"its <geometry> has {found}", _LEFT_OUT, "warning")
            return None
        (body,) = bodies
        size, path = self._size(body), self._path(body) if body.tag == "mesh" else None
        if pose is None or size is None or (body.tag == "mesh" and path is None):
            return None
        try:
            return Shape(body.tag, size, path, pose, self._color_of(element), use)  # type: ignore[arg-type]
        except ShapeError as error:
            self.report.add(body, str(error), _LEFT_OUT, "warning")
            return None

    def _size(self, body: Element) -> list[float] | None:
        default = (1.0, 1.0, 1.0) if body.tag == "mesh" else None
        attributes = _SIZES[body.tag].items()  # type: ignore[index]
        found = [self.report.numbers(body, name, count, default, "warning") for name, count in attributes]
        return None if None in found else [x for numbers in found if numbers is not None for x in numbers]

    def _path(self, mesh: Element) -> str | None:
        """The file of a mesh, or its name in the URDF if there is no such file."""
        name = mesh.attributes.get("filename", "")
        if not name:
            self.report.add(mesh, "the attribute 'filename' is missing or empty", _LEFT_OUT, "warning")
            return None
        if name not in self._found:
            path = self.meshes.find(name)
            if path is None:
                self._missing[name] = mesh
            self._found[name] = name if path is None else path
        return self._found[name]

    def _color(self, material: Element) -> tuple[float, ...] | None:
        """The colour that a material states itself."""
        element = self.report.only(material, "color")
        rgba = None if element is None else self.report.numbers(element, "rgba", 4, None, "warning")
        if element is None or rgba is None or all(0 <= x <= 1 for x in rgba):
            return rgba
        message = f"rgba={shown(element.attributes['rgba'])!r} has numbers that are not from 0 to 1"
        self.report.add(element, message, "it is read as no colour", "warning")
        return None

    def _color_of(self, shape: Element) -> tuple[float, ...] | None:
        """The colour of the material of a shape: that of the first material of its name, or its own."""
        material = self.report.only(shape, "material")
        if material is None:
            return None
        return self._named.get(material.attributes.get("name", "")) or self._own[material]
