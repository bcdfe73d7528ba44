"""Law: volumes together that are tensors give the image of others, and gradients that differences give, of each."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
from skips import require_extra

torch = require_extra("torch", "torch")

import raymarch as rm  # noqa: E402

# Forward mode has torch compile functions of its own, which warns.
pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")]
RNG = np.random.default_rng(0)
FIT, SCAN = cases.volume("rotated", 1), cases.volume("upright", 0, "identity", seed=3)
TABLE = rm.TransferFunction([-1.5, -0.3, 0.4, 1.2], RNG.uniform(0.1, 0.9, (4, 3)), [0.1, 0.6, 0.3, 0.8], 0.4)
MARCH = rm.March(step=0.7, min_transmittance=0, min_weight=0, batch=5, jitter=0.5, seed=3)
MARCHES = [
    replace(MARCH, clip=rm.Clip(planes=[((1, 0.5, 0.2), -0.6)])),
    replace(MARCH, mode="transfer", transfer=TABLE),
]
CAMERA = replace(cases.cameras(FIT)[0].scaled(0.5), width=4, height=3)
BACKGROUND = (0.2, 0.3, 0.4)


def tensor(value):
    return torch.tensor(np.array(value), dtype=torch.float64, requires_grad=True)


W = RNG.normal(size=(CAMERA.width * CAMERA.height, 4))


@pytest.fixture(scope="module")
def wanted():
    """Image, depth and gradients by other means, on the memory that `render` stands on next."""
    camera = rm.TorchCameras.of(CAMERA).cameras()[0]
    with rm.Linearised([FIT, SCAN], camera, march=MARCHES, background=BACKGROUND) as both:
        image, depth, (first, second) = both.image(), both.buffer.depth(len(W)), both.adjoint(W)
    return image, depth, (first.density, first.colour, second.density, second.table, first.background)


@pytest.fixture(scope="module")
def render(wanted):
    with rm.TorchRender([FIT, SCAN], MARCHES, slots=2) as render:
        yield render


def leaves():
    return [tensor(x) for x in (FIT.density, FIT.features, SCAN.density, TABLE.rgba, BACKGROUND)]


def seen_of(render, density, features, scan, table, background):
    return render([(density, features), (scan, None)], CAMERA, background=background, table=[None, table], depth=True)


def test_gradcheck(render):
    def numbers(*values):
        seen = seen_of(render, *values)
        return seen.image, seen.opacity

    assert all((part > 0).any() for part in numbers(*leaves()))
    assert torch.autograd.gradcheck(numbers, tuple(leaves()), fast_mode=True, check_forward_ad=True)
    few = lambda table, background: numbers(*leaves()[:3], table, background)  # noqa: E731
    assert torch.autograd.gradcheck(few, tuple(leaves()[3:]))


def test_image_opacity_depth_and_gradients_are_those_of_linearised(render, wanted):
    """Though a launch takes half of the rays."""
    image, depth, gradients = wanted
    seen = seen_of(render, *(inputs := leaves()))
    got = torch.cat([seen.image, 1 - seen.opacity[..., None]], dim=-1).reshape(-1, 4)
    np.testing.assert_allclose(got.detach().numpy(), image, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen.depth.reshape(-1).numpy(), depth, rtol=1e-12)
    assert not seen.depth.requires_grad
    found = torch.autograd.grad((got * torch.tensor(W)).sum(), inputs)
    for one, other in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-11, atol=1e-13)


def test_a_call_between_a_call_and_its_backward_changes_nothing(render):
    inputs = leaves()
    (want,) = torch.autograd.grad(seen_of(render, *inputs).image.square().sum(), inputs[3])
    seen = seen_of(render, *inputs)
    seen_of(render, inputs[0] + 1, inputs[1], inputs[2] * 0.5, inputs[3] * 0.5, None)
    assert torch.equal(torch.autograd.grad(seen.image.square().sum(), inputs[3])[0], want)


def test_without_marches_a_scan_is_seen_through_a_table_as_it_is_rendered():
    scan = rm.ScalarVolume(np.linspace(0, 1, 60).reshape(3, 4, 5))
    with rm.TorchRender([FIT, scan]) as both:
        assert [march.mode for march in both.marches] == ["emission-absorption", "transfer"]
        assert {(march.min_transmittance, march.min_weight) for march in both.marches} == {(0.0, 0.0)}


X = torch.zeros(SCAN.shape, dtype=torch.float64)
SAYS = [
    (lambda r, a: r([a], CAMERA), r"samples are a list of 1|samples are \[.*, want a list of 2, one for each volume"),
    (lambda r, a: r([a, X], CAMERA), r"samples\[1\] is .*, want an rm.TorchVolume or \(density, features\)"),
    (lambda r, a: r([a, (X[1:], None)], CAMERA), r"samples\[1\].density has shape"),
    (
        lambda r, a: r([(a[0], None), (X, None)], CAMERA),
        r"samples\[0\].features are None but mode emission-absorp",
    ),
    (lambda r, a: r([a, (X / 0, None)], CAMERA), r"volumes\[1\].density has a number that is not finite"),
    (lambda r, a: r([a, (X, None)], CAMERA, table=[X, None]), r"mode emission-absorption reads no table\[0\]"),
    (lambda r, a: r([a, (X, None)], CAMERA, table=[None, X]), r"table\[1\] has shape"),
    (lambda r, a: r([a, (X, None)], CAMERA, table=5), r"table is 5, want a list of 2"),
    (lambda r, a: r([a, (X, None)], CAMERA, background="sky"), r"background is 'sky'"),
    (lambda r, a: r([a, (X, None)], 3), r"cameras is 3"),
    (lambda r, a: r([a, (X, None)], moved()), r"no gradient by cameras; detach the tensors of cameras"),
    (lambda r, a: r([a, (X, None)], None), r"cameras are missing; call render\(samples, cameras\)"),
    (lambda r, a: r([a, (X, None)], X, CAMERA), r"features are given beside a list, which has its own; leave them out"),
    (lambda r, a: rm.TorchRender([FIT, FIT], rm.March(mode="x-ray")), r"mode x-ray does not composite"),
]


def moved():
    return rm.TorchCameras.of(CAMERA).moved(torch.zeros(1, 6, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("which", range(len(SAYS)))
def test_what_cannot_be_taken_is_named(render, which):
    call, said = SAYS[which]
    with pytest.raises(rm.RaymarchError, match=said) as raised:
        call(render, tuple(x.detach() for x in leaves()[:2]))
    assert "\n" not in str(raised.value)
