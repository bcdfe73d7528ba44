"""Pictures of volumes, cameras, fits and images with Matplotlib.

Every function draws into the Axes it is given, or into a new figure, and returns them; `error_sheet` and `image_set`
return their figure and `error_picture` an array. None shows or saves anything: `axes[0].figure.savefig("slices.png")`
does.
"""

from raymarch.plot.camera_pyramids import cameras
from raymarch.plot.cameras import frusta
from raymarch.plot.error_sheets import error_picture, error_sheet
from raymarch.plot.fits import history
from raymarch.plot.image_sheets import comparison, images
from raymarch.plot.images import image_set
from raymarch.plot.maximum_projections import projections
from raymarch.plot.ray_profile import profile
from raymarch.plot.value_histogram import histogram, iso_histogram
from raymarch.plot.view_coverage import coverage
from raymarch.plot.view_residuals import residuals
from raymarch.plot.volumes import slices

__all__ = [
    "cameras",
    "comparison",
    "coverage",
    "error_picture",
    "error_sheet",
    "frusta",
    "histogram",
    "history",
    "image_set",
    "images",
    "iso_histogram",
    "profile",
    "projections",
    "residuals",
    "slices",
]
