"""Readers of image sets that raymarch has: a new one is a module beside this one, and a line here."""

from __future__ import annotations

from raymarch.arguments.checks import optional
from raymarch.arguments.extensions import listed
from raymarch.io.image_sets.colmap import COLMAP
from raymarch.io.image_sets.nerf_synthetic import NERF_SYNTHETIC
from raymarch.io.image_sets.reader import Reader
from raymarch.io.image_sets.transforms import TRANSFORMS

READERS = [NERF_SYNTHETIC, TRANSFORMS, COLMAP]

READER = optional(listed(Reader, READERS, "rm.Reader"))
