"""What a sample of optical depth tau adds to the image and leaves of the light behind it: one rule a mode.

emission-absorption  weight = T (1 - e^-tau), T after it = T e^-tau             Max 1995
additive             weight = min(tau, T),    T after it = T - weight           Lombardi et al. 2019, "Neural Volumes"
x-ray                weight = tau, colour 1,  T after it = T e^-tau             the line integral; no background

A sample's share of the image is weight * colour, the background's is T behind the last. Each rule has its tangent and
its adjoint under it.
"""

import taichi as ti

from raymarch.kernels.numeric import exp


@ti.func
def is_alive(variant: ti.template(), T, min_transmittance):
    """Whether a ray goes on: a line integral has no end before the box's."""
    on = T >= min_transmittance
    if ti.static(variant.mode == "x-ray"):
        on = True
    return on


@ti.func
def contributes(variant: ti.template(), weight, min_weight):
    """Whether a sample's colour is looked at."""
    on = ti.abs(weight) >= min_weight
    if ti.static(variant.mode == "x-ray"):
        on = True
    return on


@ti.func
def background_of(variant: ti.template(), background):
    """The background as the mode sees it."""
    b = ti.Vector([background[0], background[1], background[2]])
    if ti.static(variant.mode == "x-ray"):
        b = ti.Vector.zero(float, 3)
    return b


@ti.func
def step_transmittance(variant: ti.template(), tau):
    """e^-tau, the share that passes the sample; nothing where a mode has no use for it."""
    e = ti.cast(0.0, float)
    if ti.static(variant.mode != "additive"):
        e = exp(-tau)
    return e


@ti.func
def composite_given(variant: ti.template(), T, tau, e):
    """Weight, and T after it; e is `step_transmittance`, for those who know it already."""
    weight, after = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(variant.mode == "additive"):
        weight = ti.min(tau, T)
        after = T - weight
    else:
        weight = T * (1.0 - e)
        after = T * e
        if ti.static(variant.mode == "x-ray"):
            weight = tau
    return weight, after


@ti.func
def composite(variant: ti.template(), T, tau):
    """Weight, and T after it."""
    return composite_given(variant, T, tau, step_transmittance(variant, tau))


@ti.func
def composite_tangent(variant: ti.template(), T, tau, dot_T, dot_tau):
    """dot_ of `composite`; at the clamp, tau = T, that of the side below."""
    dot_weight, dot_after = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(variant.mode == "additive"):
        dot_weight = ti.select(tau <= T, dot_tau, dot_T)
        dot_after = dot_T - dot_weight
    else:
        e = exp(-tau)
        dot_after = dot_T * e - T * e * dot_tau
        dot_weight = dot_T * (1.0 - e) + T * e * dot_tau
        if ti.static(variant.mode == "x-ray"):
            dot_weight = dot_tau
    return dot_weight, dot_after


@ti.func
def composite_adjoint(variant: ti.template(), T, tau, after, d_weight, remaining):
    """d_tau from what the image gains by a unit of weight, `d_weight`, and from what it owes to the T that is left.

    `remaining` is, by mode: the sum of all that comes after the sample, background included; the gain by a unit of T
    where it is next clamped; the gain by the T behind the box, times that T.
    """
    d_tau = d_weight - remaining
    if ti.static(variant.mode == "emission-absorption"):
        d_tau = after * d_weight - remaining
    elif ti.static(variant.mode == "additive"):
        d_tau = ti.select(tau <= T, d_weight - remaining, 0.0)
    return d_tau
