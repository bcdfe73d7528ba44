"""Gradient shading of a transfer function: each sample's colour is lit as a surface across the slope of the value."""

from dataclasses import replace

from raymarch.kernels.integrator.lit import LIT_IMAGE, LIT_NORMAL
from raymarch.kernels.modes.transfer import TRANSFER

LIT = replace(TRANSFER, image=LIT_IMAGE, normal=LIT_NORMAL, plain=TRANSFER, shaded=True, ndc=False)
