"""Transfer function: optical depth and colour of a sample by its value, looked up in the rays' table.

The lookup, its tangent and its adjoint are in `kernels/field/tables`; a classified sample composites as one of
emission and absorption does.
"""

from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.emission_absorption import adjoint, composite, tangent

TRANSFER = Mode("transfer", composite, tangent, adjoint, power=1, classifies=True)
