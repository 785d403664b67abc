"""Inertias, joints and links, and the topology of a tree: what other packages import from here."""

from screwdyn.mechanism.contact import Ball, Box, Capsule, Contact, Plane
from screwdyn.mechanism.inertia import Inertia, failing_condition
from screwdyn.mechanism.joint import Joint, Mimic, checked_positions, fixed, pose_at, screw_kind
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.mechanism.shape import Shape, Shapes, Use
from screwdyn.mechanism.structure import Body, Handle, Mechanism, require_joint
from screwdyn.mechanism.topology import Topology, check_no_rotor, check_open, check_rotors, check_untouched, with_ties
