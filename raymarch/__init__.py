"""raymarch: a differentiable volume raymarcher.

import raymarch as rm

views = rm.load_views("scenes/tower", split="train")
result = rm.fit(views, "quick")
rm.save(result.volume, "tower.h5")
image = rm.render(result.volume, views.cameras[3])
"""

import importlib
import os
import warnings
from typing import TYPE_CHECKING

os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")  # else Taichi sends an id to a server as it is imported
for _engine in ("TAICHI", "QUADRANTS"):
    os.environ.setdefault(f"ENABLE_{_engine}_HEADER_PRINT", "0")
if os.name == "posix" and not os.environ.get("HOME"):
    # Without a home Taichi aborts the process as it is imported; the system knows most users' homes.
    _home = os.path.expanduser("~")
    os.environ["HOME"] = "/dev/null" if _home == "~" else _home
for _prefix in ("TI", "QD"):
    os.environ.setdefault(f"{_prefix}_ENABLE_PYBUF", "0")  # else it writes to a notebook's stderr


def _ignore_warnings_of_engines() -> None:
    """Taichi 1.7.4 calls what Python 3.15 will not have, and Quadrants 1.4.0 warns of kernels of its own: who makes
    errors of warnings could not use them."""
    warnings.filterwarnings("ignore", r".*getdefaultlocale", DeprecationWarning, r"taichi\.")
    warnings.filterwarnings("ignore", "cannot create weak reference", UserWarning, r"quadrants\.")


_ignore_warnings_of_engines()

if TYPE_CHECKING:
    __version__: str
    import raymarch.plot as plot  # noqa: F401
    from raymarch.device.pool import release as release
    from raymarch.diagnosis.diagnose import diagnose as diagnose
    from raymarch.diagnosis.diagnose_fit import diagnose_fit as diagnose_fit
    from raymarch.diagnosis.finding import Finding as Finding
    from raymarch.errors import RaymarchError as RaymarchError
    from raymarch.evaluation.held_out import evaluate as evaluate
    from raymarch.evaluation.metrics import psnr as psnr
    from raymarch.evaluation.metrics import psnr_halves as psnr_halves
    from raymarch.evaluation.metrics import ssim as ssim
    from raymarch.fitting.checkpoints.checkpoint import load_checkpoint as load_checkpoint
    from raymarch.fitting.checkpoints.checkpoint import save_checkpoint as save_checkpoint
    from raymarch.fitting.checkpoints.saver import Checkpoints as Checkpoints
    from raymarch.fitting.fit import fit as fit
    from raymarch.fitting.fit_table import TableFit as TableFit
    from raymarch.fitting.fit_table import fit_table as fit_table
    from raymarch.fitting.fitter import Fitter as Fitter
    from raymarch.fitting.forecast import Forecast as Forecast
    from raymarch.fitting.forecast import forecast as forecast
    from raymarch.fitting.forecast import forecast_rendering as forecast_rendering
    from raymarch.fitting.report import Fit as Fit
    from raymarch.fitting.report import Report as Report
    from raymarch.fitting.settings.objective import Loss as Loss
    from raymarch.fitting.settings.objective import Objective as Objective
    from raymarch.fitting.settings.objective import Regulariser as Regulariser
    from raymarch.fitting.settings.optimiser import Adam as Adam
    from raymarch.fitting.settings.settings import FitSettings as FitSettings
    from raymarch.fitting.settings.settings import preset as preset
    from raymarch.fitting.sweep import Sweep as Sweep
    from raymarch.fitting.sweep import SweptFit as SweptFit
    from raymarch.fitting.sweep import sweep as sweep
    from raymarch.geometry.camera import Camera as Camera
    from raymarch.geometry.camera_path import path_through as path_through
    from raymarch.geometry.clip import Clip as Clip
    from raymarch.geometry.lens import Lens as Lens
    from raymarch.geometry.ndc import ndc_of_frustum as ndc_of_frustum
    from raymarch.geometry.orbit import orbit as orbit
    from raymarch.geometry.orbit import orbit_of_volume as orbit_of_volume
    from raymarch.geometry.orbit import spiral_of_volume as spiral_of_volume
    from raymarch.geometry.rays import Rays as Rays
    from raymarch.gradients.check_process import GradientReport as GradientReport
    from raymarch.gradients.check_process import check_gradients as check_gradients
    from raymarch.gradients.linearised import Linearised as Linearised
    from raymarch.gradients.linearised import jacobian as jacobian
    from raymarch.gradients.parameters import Parameters as Parameters
    from raymarch.io.image_sets.load import load_views as load_views
    from raymarch.io.image_sets.reader import Reader as Reader
    from raymarch.io.images.write import write_png as write_png
    from raymarch.io.meshes.mesh_file import write_mesh as write_mesh
    from raymarch.io.videos.camera_path_file import load_camera_path as load_camera_path
    from raymarch.io.videos.write_video import write_video as write_video
    from raymarch.io.volumes.format import Format as Format
    from raymarch.io.volumes.summary import ScalarSummary as ScalarSummary
    from raymarch.io.volumes.summary import VolumeSummary as VolumeSummary
    from raymarch.io.volumes.transfer_table import load_table as load_table
    from raymarch.io.volumes.transfer_table import save_table as save_table
    from raymarch.io.volumes.volume_file import describe as describe
    from raymarch.io.volumes.volume_file import load as load
    from raymarch.io.volumes.volume_file import save as save
    from raymarch.kernels.integrator.mode import Mode as Mode
    from raymarch.meshing.isosurface_mesh import export_mesh as export_mesh
    from raymarch.meshing.isosurface_mesh import isosurface_mesh as isosurface_mesh
    from raymarch.meshing.isosurface_mesh import surface_points as surface_points
    from raymarch.ranks.open_ranks import open_ranks as open_ranks
    from raymarch.registration.refine import Refinement as Refinement
    from raymarch.registration.refine import refine as refine
    from raymarch.registration.register import Registration as Registration
    from raymarch.registration.register import register as register
    from raymarch.rendering.march_settings import March as March
    from raymarch.rendering.out_of_core import OutOfCoreForecast as OutOfCoreForecast
    from raymarch.rendering.out_of_core import OutOfCoreRenderer as OutOfCoreRenderer
    from raymarch.rendering.projector import Projector as Projector
    from raymarch.rendering.render_many import render_many as render_many
    from raymarch.rendering.renderer import Renderer as Renderer
    from raymarch.rendering.renderer import Rendering as Rendering
    from raymarch.rendering.renderer import render as render
    from raymarch.rendering.shading import Shading as Shading
    from raymarch.runtime import start as start
    from raymarch.sfm.find_cameras import FoundCameras as FoundCameras
    from raymarch.sfm.find_cameras import SfmSettings as SfmSettings
    from raymarch.sfm.find_cameras import find_cameras as find_cameras
    from raymarch.solvers.least_squares import Solution as Solution
    from raymarch.solvers.least_squares import gauss_newton as gauss_newton
    from raymarch.solvers.least_squares import levenberg_marquardt as levenberg_marquardt
    from raymarch.solvers.linear import Operator as Operator
    from raymarch.solvers.linear import cgls as cgls
    from raymarch.solvers.linear import conjugate_gradients as conjugate_gradients
    from raymarch.tape.scene import Scene as Scene
    from raymarch.tape.splatting import Splat as Splat
    from raymarch.tape.splatting import splat as splat
    from raymarch.torch.cameras import TorchCameras as TorchCameras
    from raymarch.torch.neural_volumes import TorchMarch as TorchMarch
    from raymarch.torch.render import TorchRender as TorchRender
    from raymarch.torch.render import TorchRendering as TorchRendering
    from raymarch.torch.tensors import TorchVolume as TorchVolume
    from raymarch.viewer.page.export_page import Page as Page
    from raymarch.viewer.page.export_page import export_page as export_page
    from raymarch.viewer.page.export_page import make_page as make_page
    from raymarch.viewer.view import view as view
    from raymarch.views.depth_images import distances_of_z as distances_of_z
    from raymarch.views.views import Views as Views
    from raymarch.volumes.activation import Activation as Activation
    from raymarch.volumes.activation import ColourActivation as ColourActivation
    from raymarch.volumes.activation import DensityActivation as DensityActivation
    from raymarch.volumes.bricks import Bricks as Bricks
    from raymarch.volumes.mesh import Mesh as Mesh
    from raymarch.volumes.scalar_volume import ScalarVolume as ScalarVolume
    from raymarch.volumes.selection import Selection as Selection
    from raymarch.volumes.transfer_function import TransferFunction as TransferFunction
    from raymarch.volumes.volume import Volume as Volume

# Names are looked up when first used: Taichi, HDF5 and Matplotlib take half a second each to import.
_HOME = {
    "device.pool": ["release"],
    "diagnosis.diagnose": ["diagnose"],
    "diagnosis.diagnose_fit": ["diagnose_fit"],
    "diagnosis.finding": ["Finding"],
    "errors": ["RaymarchError"],
    "evaluation.held_out": ["evaluate"],
    "evaluation.metrics": ["psnr", "psnr_halves", "ssim"],
    "fitting.checkpoints.checkpoint": ["load_checkpoint", "save_checkpoint"],
    "fitting.checkpoints.saver": ["Checkpoints"],
    "fitting.fit": ["fit"],
    "fitting.fit_table": ["TableFit", "fit_table"],
    "fitting.fitter": ["Fitter"],
    "fitting.forecast": ["Forecast", "forecast", "forecast_rendering"],
    "fitting.report": ["Fit", "Report"],
    "fitting.settings.objective": ["Loss", "Objective", "Regulariser"],
    "fitting.settings.optimiser": ["Adam"],
    "fitting.settings.settings": ["preset", "FitSettings"],
    "fitting.sweep": ["Sweep", "SweptFit", "sweep"],
    "geometry.camera": ["Camera"],
    "geometry.camera_path": ["path_through"],
    "geometry.clip": ["Clip"],
    "geometry.lens": ["Lens"],
    "geometry.ndc": ["ndc_of_frustum"],
    "geometry.orbit": ["orbit", "orbit_of_volume", "spiral_of_volume"],
    "geometry.rays": ["Rays"],
    "gradients.check_process": ["GradientReport", "check_gradients"],
    "gradients.linearised": ["jacobian", "Linearised"],
    "gradients.parameters": ["Parameters"],
    "io.image_sets.load": ["load_views"],
    "io.image_sets.reader": ["Reader"],
    "io.images.write": ["write_png"],
    "io.meshes.mesh_file": ["write_mesh"],
    "io.videos.camera_path_file": ["load_camera_path"],
    "io.videos.write_video": ["write_video"],
    "io.volumes.format": ["Format"],
    "io.volumes.summary": ["ScalarSummary", "VolumeSummary"],
    "io.volumes.transfer_table": ["load_table", "save_table"],
    "io.volumes.volume_file": ["describe", "load", "save"],
    "kernels.integrator.mode": ["Mode"],
    "meshing.isosurface_mesh": ["export_mesh", "isosurface_mesh", "surface_points"],
    "ranks.open_ranks": ["open_ranks"],
    "registration.refine": ["Refinement", "refine"],
    "registration.register": ["Registration", "register"],
    "rendering.march_settings": ["March"],
    "rendering.out_of_core": ["OutOfCoreForecast", "OutOfCoreRenderer"],
    "rendering.projector": ["Projector"],
    "rendering.render_many": ["render_many"],
    "rendering.renderer": ["Renderer", "Rendering", "render"],
    "rendering.shading": ["Shading"],
    "runtime": ["start"],
    "sfm.find_cameras": ["FoundCameras", "find_cameras", "SfmSettings"],
    "solvers.least_squares": ["Solution", "gauss_newton", "levenberg_marquardt"],
    "solvers.linear": ["Operator", "cgls", "conjugate_gradients"],
    "tape.scene": ["Scene"],
    "tape.splatting": ["Splat", "splat"],
    "torch.cameras": ["TorchCameras"],
    "torch.neural_volumes": ["TorchMarch"],
    "torch.render": ["TorchRender", "TorchRendering"],
    "torch.tensors": ["TorchVolume"],
    "viewer.page.export_page": ["Page", "export_page", "make_page"],
    "viewer.view": ["view"],
    "views.depth_images": ["distances_of_z"],
    "views.views": ["Views"],
    "volumes.activation": ["Activation", "ColourActivation", "DensityActivation"],
    "volumes.bricks": ["Bricks"],
    "volumes.mesh": ["Mesh"],
    "volumes.scalar_volume": ["ScalarVolume"],
    "volumes.selection": ["Selection"],
    "volumes.transfer_function": ["TransferFunction"],
    "volumes.volume": ["Volume"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted([*_MODULE_OF, "plot"])


def __getattr__(name: str) -> object:
    if name == "__version__":
        from raymarch.system.versions import version_of

        return version_of("raymarch")
    if name != "plot" and name not in _MODULE_OF:
        raise AttributeError(f"module 'raymarch' has no attribute {name!r}")
    _ignore_warnings_of_engines()  # once more: who restores filters, as pytest does, has taken ours away
    if name == "plot":
        return importlib.import_module("raymarch.plot")
    value = getattr(importlib.import_module(f"raymarch.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
