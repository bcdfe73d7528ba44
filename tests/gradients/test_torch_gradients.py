"""Law: image and every gradient are those of another march, written in plain torch and differentiated by torch."""

from __future__ import annotations

import cases
import numpy as np
import pytest
from skips import require_extra

torch = require_extra("torch", "torch")

import torch_march  # noqa: E402

from raymarch.gradients.linearised import Linearised  # noqa: E402
from raymarch.kernels.modes.registry import COMPOSITING_MODES as MODES  # noqa: E402
from raymarch.rendering.march_settings import March  # noqa: E402

pytestmark = pytest.mark.extra
EXPOSURE = (1.1, 0.9, 1.05, 0.02, -0.01, 0.03)
STEP = 0.43
ACTIVATIONS = [("exponential", "clamped"), ("softplus", "sigmoid"), ("softplus", "sigmoid")]
DEGREES = [3, 1, 0]  # directions enter alike in all modes, and not at all in the last


@pytest.mark.parametrize("which", [0, 1], ids=["outside", "inside"])
@pytest.mark.parametrize(("mode", "activations", "degree"), list(zip(MODES, ACTIVATIONS, DEGREES, strict=True)))
def test_image_and_every_gradient_are_torchs(mode, activations, degree, which):
    volume = cases.volume("rotated", degree, *activations)
    camera = cases.cameras(volume)[which]
    march = March(min_transmittance=0.0, min_weight=0.0, step=STEP, mode=mode)
    v = torch_march.variables(volume, camera, cases.BACKGROUND, EXPOSURE, STEP)
    wanted = torch_march.image(v, camera, volume.activation, volume.voxel, mode)
    d_image = np.random.default_rng(0).normal(size=wanted.shape)
    (wanted * torch.tensor(d_image)).sum().backward()
    how = {"background": cases.BACKGROUND, "exposure": EXPOSURE, "march": march, "columns": 1}
    with Linearised(volume, camera, **how) as seen:
        np.testing.assert_allclose(seen.image(), wanted.detach().numpy(), rtol=0, atol=1e-12)
        got, groups = seen.adjoint(d_image), seen.groups
    assert {"pose", "focal", "principal_point", "density"} <= set(groups)
    for name in groups:
        want = v[name].grad.numpy()
        np.testing.assert_allclose(getattr(got, name), want, rtol=0, atol=1e-11 * np.abs(want).max(), err_msg=name)
