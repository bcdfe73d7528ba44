"""Transfer function: optical depth and colour of a sample by its value, looked up in the rays' table.

The lookup, its tangent and its adjoint are in `kernels/field/tables`. A classified sample composites as one of emission
and absorption does. Lit, its colour is shaded as a surface across the slope of the value (`kernels/integrator/lit`).
"""

from dataclasses import replace

from raymarch.kernels.integrator.lit import LIT_IMAGE, LIT_NORMAL
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.emission_absorption import adjoint, composite, tangent

TRANSFER = Mode("transfer", composite, tangent, adjoint, power=1, classifies=True)
LIT_TRANSFER = replace(TRANSFER, image=LIT_IMAGE, normal=LIT_NORMAL, plain=TRANSFER, shaded=True, ndc=False)
