"""Libraries that meshes need: `pip install "raymarch[formats]"`."""

from __future__ import annotations

import importlib
from types import ModuleType

from raymarch.errors import RaymarchError

INSTALL = 'pip install "raymarch[formats]"'


def _library(module: str, package: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise RaymarchError(f"{what} needs {package}, which is not installed; {INSTALL}") from None


def skimage_measure() -> ModuleType:
    """scikit-image's measures, of which marching cubes is one; RaymarchError where it is not installed."""
    return _library("skimage.measure", "scikit-image", "an isosurface")


def connected_components() -> ModuleType:
    """SciPy's graphs; RaymarchError where it is not installed."""
    return _library("scipy.sparse", "scipy", "the largest pieces of a mesh")


def fast_simplification() -> ModuleType:
    """Quadric decimation; RaymarchError where it is not installed."""
    return _library("fast_simplification", "fast-simplification", "decimation")
