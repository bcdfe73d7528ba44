"""Laws of windows: which values of an image are black and white on the command line."""

import numpy as np
import pytest

import raymarch as rm
from raymarch.cli import modes
from raymarch.rendering.renderer import Rendering


def seen(values, met):
    image = np.repeat(np.asarray(values, np.float32)[..., None], 3, axis=-1)
    met = np.asarray(met, np.float32)
    return Rendering(image, met, np.where(met > 0, 1.0, np.inf).astype(np.float32))


@pytest.mark.parametrize(
    ("values", "met", "window"),
    [
        ([[0, 500, 2000]], [[0, 1, 1]], [0, 2000]),
        ([[0, -1000, 3000]], [[0, 1, 1]], [-1000, 3000]),
        ([[0, -1000, -200]], [[0, 1, 1]], [-1000, -200]),
        ([[0, 7, 7]], [[0, 1, 1]], [0, 7]),
        ([[0, 0, 0]], [[0, 1, 1]], [0, 1]),
        ([[0, 0, 0]], [[0, 0, 0]], [0, 1]),
    ],
)
def test_the_first_image_s_ends_are_black_and_white_and_what_is_not_met_is_black(values, met, window, capsys):
    image, found = modes.apply_window(seen(values, met), None)
    assert found == window and f"white {window[1]:.4g}" in capsys.readouterr().err
    assert image.min() >= 0 and image.max() <= 1 and not image[np.asarray(met) == 0].any()
    again, same = modes.apply_window(seen(values, met), found)
    assert same == found and not capsys.readouterr().err
    np.testing.assert_array_equal(again, image)


@pytest.mark.parametrize("mode", modes.MODES)
def test_a_window_goes_with_values_alone(mode):
    table = rm.TransferFunction.of_colormap("gray", 0, 1)
    march = rm.March(
        mode=mode, iso=1.0 if mode == "isosurface" else None, transfer=table if mode == "transfer" else None
    )
    if modes.renders_values(march):
        modes.require_window(march, [0.0, 9.0])
    else:
        with pytest.raises(rm.RaymarchError, match="are colours; leave it out"):
            modes.require_window(march, [0.0, 9.0])
