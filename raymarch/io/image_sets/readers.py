"""Readers of image sets that raymarch has: a new one is a module beside this one, and a line here."""

from __future__ import annotations

from raymarch.arguments.checks import optional
from raymarch.arguments.extensions import listed
from raymarch.io.image_sets.colmap.colmap import COLMAP
from raymarch.io.image_sets.dtu import DTU
from raymarch.io.image_sets.hdf5.reading import HDF5_SET
from raymarch.io.image_sets.llff import LLFF
from raymarch.io.image_sets.metashape import METASHAPE
from raymarch.io.image_sets.middlebury import MIDDLEBURY
from raymarch.io.image_sets.nerf_synthetic import NERF_SYNTHETIC
from raymarch.io.image_sets.nsvf import NSVF
from raymarch.io.image_sets.polycam import POLYCAM
from raymarch.io.image_sets.reader import Reader
from raymarch.io.image_sets.realitycapture import REALITYCAPTURE
from raymarch.io.image_sets.record3d import RECORD3D
from raymarch.io.image_sets.transforms import TRANSFORMS

READERS = [
    NERF_SYNTHETIC,
    TRANSFORMS,
    COLMAP,
    LLFF,
    MIDDLEBURY,
    DTU,
    NSVF,
    POLYCAM,
    RECORD3D,
    METASHAPE,
    REALITYCAPTURE,
    HDF5_SET,
]

READER = optional(listed(Reader, READERS, "rm.Reader"))
