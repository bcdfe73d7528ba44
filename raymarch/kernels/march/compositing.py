"""Compositing of a ray's samples as the variant's mode has it: what marches ask of a `Mode`."""

import taichi as ti


@ti.func
def is_alive(variant: ti.template(), T, min_transmittance):
    """Early ray termination: whether a ray goes on."""
    on = T >= min_transmittance
    if ti.static(not variant.mode.ends):
        on = True
    return on


@ti.func
def contributes(variant: ti.template(), weight, min_weight):
    """Contribution test: whether a sample's colour is looked at."""
    on = ti.abs(weight) >= min_weight
    if ti.static(not variant.mode.ends):
        on = True
    return on


@ti.func
def background_of(variant: ti.template(), background):
    """Background as the mode sees it."""
    b = ti.Vector([background[0], background[1], background[2]])
    if ti.static(not variant.mode.background):
        b = ti.Vector.zero(float, 3)
    return b


@ti.func
def composite(variant: ti.template(), T, tau):
    """Compositing of one sample: weight, and transmittance T after it."""
    return variant.mode.composite(T, tau, variant.mode.step_transmittance(tau))
