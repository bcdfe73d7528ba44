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
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
if os.name == "posix" and not os.environ.get("HOME"):
    # Without a home Taichi aborts the process as it is imported; the system knows most users' homes.
    _home = os.path.expanduser("~")
    os.environ["HOME"] = "/dev/null" if _home == "~" else _home
os.environ.setdefault("TI_ENABLE_PYBUF", "0")  # else it writes to a notebook's stderr

# Taichi 1.7.4 calls what Python 3.15 will not have: who makes errors of warnings could not import it.
warnings.filterwarnings("ignore", r".*getdefaultlocale", DeprecationWarning, r"taichi\.")

if TYPE_CHECKING:
    import raymarch.plot as plot  # noqa: F401
    from raymarch.camera import Camera as Camera
    from raymarch.camera import orbit as orbit
    from raymarch.camera import orbit_of_volume as orbit_of_volume
    from raymarch.check import GradientReport as GradientReport
    from raymarch.check import check_gradients as check_gradients
    from raymarch.deposit import Splat as Splat
    from raymarch.deposit import splat as splat
    from raymarch.derivatives import jacobian as jacobian
    from raymarch.errors import RaymarchError as RaymarchError
    from raymarch.estimate import Forecast as Forecast
    from raymarch.estimate import forecast as forecast
    from raymarch.estimate import forecast_rendering as forecast_rendering
    from raymarch.evaluation import evaluate as evaluate
    from raymarch.fitter import Fit as Fit
    from raymarch.fitter import Fitter as Fitter
    from raymarch.fitter import fit as fit
    from raymarch.io.image_set import load_views as load_views
    from raymarch.io.picture import write_png as write_png
    from raymarch.io.volume_hdf5 import describe as describe
    from raymarch.io.volume_hdf5 import load as load
    from raymarch.io.volume_hdf5 import save as save
    from raymarch.linearised import Linearised as Linearised
    from raymarch.metrics import psnr as psnr
    from raymarch.metrics import ssim as ssim
    from raymarch.optimiser import Adam as Adam
    from raymarch.parameters import Parameters as Parameters
    from raymarch.pool import release as release
    from raymarch.rays import Rays as Rays
    from raymarch.refinement import Refinement as Refinement
    from raymarch.refinement import refine as refine
    from raymarch.registration import Registration as Registration
    from raymarch.registration import register as register
    from raymarch.renderer import March as March
    from raymarch.renderer import Renderer as Renderer
    from raymarch.renderer import Rendering as Rendering
    from raymarch.renderer import render as render
    from raymarch.report import Report as Report
    from raymarch.runtime import start as start
    from raymarch.scene import Scene as Scene
    from raymarch.settings import FitSettings as FitSettings
    from raymarch.settings import preset as preset
    from raymarch.solve import Operator as Operator
    from raymarch.solve import Solution as Solution
    from raymarch.solve import cgls as cgls
    from raymarch.solve import conjugate_gradients as conjugate_gradients
    from raymarch.solve import gauss_newton as gauss_newton
    from raymarch.solve import levenberg_marquardt as levenberg_marquardt
    from raymarch.torch_bridge import TorchMarch as TorchMarch
    from raymarch.view import Views as Views
    from raymarch.volume import Activation as Activation
    from raymarch.volume import Volume as Volume

# Names are looked up when first used: Taichi, HDF5 and Matplotlib take half a second each to import.
_HOME = {
    "camera": ["Camera", "orbit", "orbit_of_volume"],
    "check": ["GradientReport", "check_gradients"],
    "deposit": ["Splat", "splat"],
    "errors": ["RaymarchError"],
    "evaluation": ["evaluate"],
    "fitter": ["Fit", "Fitter", "fit"],
    "estimate": ["Forecast", "forecast", "forecast_rendering"],
    "io.image_set": ["load_views"],
    "io.picture": ["write_png"],
    "io.volume_hdf5": ["describe", "load", "save"],
    "derivatives": ["jacobian"],
    "linearised": ["Linearised"],
    "metrics": ["psnr", "ssim"],
    "optimiser": ["Adam"],
    "parameters": ["Parameters"],
    "pool": ["release"],
    "rays": ["Rays"],
    "refinement": ["Refinement", "refine"],
    "registration": ["Registration", "register"],
    "renderer": ["March", "Renderer", "Rendering", "render"],
    "report": ["Report"],
    "runtime": ["start"],
    "scene": ["Scene"],
    "settings": ["FitSettings", "preset"],
    "solve": ["Operator", "Solution", "cgls", "conjugate_gradients", "gauss_newton", "levenberg_marquardt"],
    "torch_bridge": ["TorchMarch"],
    "view": ["Views"],
    "volume": ["Activation", "Volume"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted([*_MODULE_OF, "plot"])  # noqa: PLE0605


def __getattr__(name: str):
    if name == "plot":
        return importlib.import_module("raymarch.plot")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'raymarch' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"raymarch.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
