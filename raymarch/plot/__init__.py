"""Pictures of volumes, cameras, fits and images with Matplotlib.

Every function draws into the Axes it is given, or into a new figure, and returns them; `error_sheet` returns its figure
and `error_picture` an array. None shows or saves anything: `axes[0].figure.savefig("slices.png")` does.
"""

from raymarch.plot.camera_pyramids import cameras
from raymarch.plot.error_sheets import error_picture, error_sheet
from raymarch.plot.fit_history import history
from raymarch.plot.image_set import image_set
from raymarch.plot.image_sheets import comparison, images
from raymarch.plot.volume_slices import slices

__all__ = ["cameras", "comparison", "error_picture", "error_sheet", "history", "image_set", "images", "slices"]
