"""Compositing modes that are known by name, the default first."""

from raymarch.kernels.march.additive import ADDITIVE
from raymarch.kernels.march.emission_absorption import EMISSION_ABSORPTION
from raymarch.kernels.march.transfer import TRANSFER
from raymarch.kernels.march.x_ray import X_RAY

OF_SAMPLES = {mode.name: mode for mode in (EMISSION_ABSORPTION, ADDITIVE, X_RAY)}  # by a volume's own sigma and colour
MODES = {**OF_SAMPLES, TRANSFER.name: TRANSFER}
