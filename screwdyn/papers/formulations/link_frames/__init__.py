"""The GIM and the MCI by the steps of their source, in link frames, with their operations by row.

`Spatial` follows Bhangale, Saha, Agrawal 2004, section 3.2 and appendix B, `Planar` section 3.2.1. `denoc` has the same
matrices in axes of the base, for trees.
"""

from screwdyn.papers.formulations.link_frames.planar_arm import Planar
from screwdyn.papers.formulations.link_frames.spatial_arm import Spatial

__all__ = ["Planar", "Spatial"]
