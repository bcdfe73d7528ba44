"""Modes that are known by name, the default first."""

from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.additive import ADDITIVE
from raymarch.kernels.modes.emission_absorption import EMISSION_ABSORPTION
from raymarch.kernels.modes.extremum import MAXIMUM, MINIMUM
from raymarch.kernels.modes.isosurface import ISOSURFACE
from raymarch.kernels.modes.line_integral import AVERAGE, X_RAY_EXACT, X_RAY_JOSEPH
from raymarch.kernels.modes.transfer import TRANSFER
from raymarch.kernels.modes.x_ray import X_RAY

# By a volume's own sigma and colour.
COMPOSITING_MODES = {mode.name: mode for mode in (EMISSION_ABSORPTION, ADDITIVE, X_RAY)}
RAY_MODES = {mode.name: mode for mode in (MAXIMUM, MINIMUM, AVERAGE, ISOSURFACE, X_RAY_EXACT, X_RAY_JOSEPH)}
MODES: dict[str, Mode] = {**COMPOSITING_MODES, TRANSFER.name: TRANSFER, **RAY_MODES}
