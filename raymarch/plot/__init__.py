"""Pictures of volumes, cameras, fits and images with Matplotlib.

Every function draws into the Axes it is given, or into a new figure, and returns them; `error_sheet` and `image_set`
return their figure and `error_picture` an array. None shows or saves anything: `axes[0].figure.savefig("slices.png")`
does.
"""

from raymarch.plot.cameras import cameras, coverage, frusta
from raymarch.plot.fits import error_picture, error_sheet, history, residuals
from raymarch.plot.images import channels, comparison, image_set, images
from raymarch.plot.sweeps import sweep
from raymarch.plot.volumes import histogram, iso_histogram, profile, projections, slices

__all__ = [
    "cameras",
    "channels",
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
    "sweep",
]
