"""Law: the first picture of a scan, nothing said, shows it: solid, lit, on a clear dark ground, filling the frame, head
up; whatever scanner, microscope or program its values are from, and whatever their padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.geometry.orbit import orbit_of_points
from raymarch.rendering.default_look import SCAN_ELEVATION, default_look, farthest_seen_points
from raymarch.volumes.default_table import default_table, named_table
from raymarch.volumes.value_kind import kind_of

SIDE, N = 64, 36
X = np.stack(np.meshgrid(*[np.linspace(-1, 1, N)] * 3, indexing="ij"), -1)
RNG = np.random.default_rng(5)
MIDDLE = (0, 0, -0.25)
BODY = (((X - MIDDLE) / (0.5, 0.5, 0.5)) ** 2).sum(-1) < 1
NOSE = ((X - (0, -0.5, -0.25)) ** 2).sum(-1) < 0.2**2  # towards -y
HAT = (np.abs(X[..., 0]) < 0.16) & (np.abs(X[..., 1]) < 0.16) & (X[..., 2] > 0.1) & (X[..., 2] < 0.8)  # towards +z
HEAD = BODY | NOSE | HAT
SKULL = HEAD & ~((((X - MIDDLE) / 0.4) ** 2).sum(-1) < 1)
MM = np.diag([4.0, 4.0, 4.0, 1.0])


def noise(width):
    return RNG.normal(0, width, HEAD.shape)


TUBE = (X[..., :2] ** 2).sum(-1) < 1


def hounsfield(padding=-2000):
    values = np.where(SKULL, 900, np.where(HEAD, 40, -1000)) + noise(15)
    return np.where(TUBE, values, padding).astype(np.int16)


def blobs(background, bright):
    values = RNG.poisson(background, HEAD.shape).astype(float)
    for place in RNG.uniform(-0.75, 0.75, (30, 3)):
        values += RNG.uniform(0.5, 1) * bright * np.exp(-((X - place) ** 2).sum(-1) / 0.05**2 / 2)
    return values


def marked(values, mark, share):
    """Values with a mark for "no value" in some places."""
    return np.where(RNG.random(values.shape) < share, mark, values)


STORED = (hounsfield(-1024) + 1024).clip(0).astype(np.uint16)
HEADS = {  # scans of the same head: what they are taken for
    "CT, padded": (rm.ScalarVolume(hounsfield(), MM, unit="HU", world="LPS"), "ct"),
    "CT, padded by -1024": (rm.ScalarVolume(hounsfield(-1024), MM, unit="HU", world="LPS"), "ct"),
    "CT, no unit": (rm.ScalarVolume(hounsfield(-32768), MM), "ct"),
    "CT, stored from 0": (rm.ScalarVolume(STORED, MM), "object"),
    "CT by slope": (rm.ScalarVolume(STORED, MM, intercept=-1024, unit="HU"), "ct"),
    "CT of soft tissue": (rm.ScalarVolume(np.where(HEAD, 30, -1000) + noise(10), MM, unit="HU"), "soft ct"),
    "MR": (rm.ScalarVolume(np.hypot(np.where(HEAD, 400 + 150 * X[..., 0], 0) + noise(12), noise(12)), MM), "object"),
    "MR, air cut to 0": (rm.ScalarVolume(np.where(HEAD, 400 + noise(60), 0).clip(0).astype(np.uint16)), "object"),
    "micro-CT of 16 bit": (
        rm.ScalarVolume(np.where(TUBE, np.where(HEAD, 30000, 12000) + noise(900), 0).astype(np.uint16)), "object",
    ),
    "micro-CT in floats": (rm.ScalarVolume((np.where(HEAD, 0.04, 0) + noise(0.003)).astype(np.float32)), "object"),
    "8 bit": (rm.ScalarVolume((np.where(HEAD, 180, 20) + noise(4)).clip(0, 255).astype(np.uint8)), "object"),
    "dark on bright": (rm.ScalarVolume((np.where(HEAD, 30, 210) + noise(4)).clip(0, 255).astype(np.uint8)), "dark"),
    "mask": (rm.ScalarVolume(HEAD.astype(np.uint8)), "object"),
    "mask of 255": (rm.ScalarVolume(HEAD.astype(np.uint8) * 255), "object"),
    "labels": (rm.ScalarVolume(np.where(HAT, 3, np.where(SKULL, 2, HEAD)).astype(np.uint8)), "labels"),
    "far marks": (rm.ScalarVolume(marked(np.where(HEAD, 800.0, 50) + noise(15), -32768, 0.01)), "object"),
    "large numbers": (rm.ScalarVolume(1e5 + np.where(HEAD, 800.0, 50) + noise(15)), "object"),
    "tiny numbers": (rm.ScalarVolume(1e-9 * (np.where(HEAD, 800.0, 50) + noise(15))), "object"),
}  # fmt: skip
PLUS, MINUS = (np.exp(-((X - at) ** 2).sum(-1) / 0.08) for at in (0.4, -0.4))
OTHERS = {
    "fluorescence": (rm.ScalarVolume(blobs(8, 250).astype(np.uint16)), "sparse"),
    "fluorescence, ground cut": (rm.ScalarVolume((blobs(8, 250) - 10).clip(0, 255).astype(np.uint8)), "sparse"),
    "map of density": (rm.ScalarVolume(0.3 * (blobs(0, 1) > 0.3) + noise(0.02)), "sparse"),
    "signed": (rm.ScalarVolume(PLUS - MINUS), "signed"),
    "a soft ball": (rm.ScalarVolume(1000 * np.exp(-4 * (X**2).sum(-1))), "object"),
    "one value": (rm.ScalarVolume(np.full((8, 8, 8), 7)), "constant"),
}
ALL = HEADS | OTHERS
KINDS = ALL | {
    "marks above": (rm.ScalarVolume(marked(np.where(HEAD, 800.0, 50) + noise(15), 1e9, 0.002)), "object"),
    "half": (rm.ScalarVolume(np.where(HEAD, 800, 50 + noise(15)).astype(np.float16)), "object"),
    "a few labels of many": (rm.ScalarVolume((1000 * HEAD + 1035 * HAT + 7 * NOSE).astype(np.int16)), "object"),
    "a boolean": (rm.ScalarVolume(HEAD.astype(np.int8) - 1), "object"),
    "faint": (rm.ScalarVolume(np.where(HEAD, 60, 50) + noise(1)), "object"),
    "two values": (rm.ScalarVolume(np.where(HEAD, 7.5, -3)), "object"),
}


def pictured(scan, side=SIDE):
    """What is seen of a scan from its front by default."""
    look = default_look(scan)
    points = farthest_seen_points(scan.as_volume(), look.march)
    camera = orbit_of_points(points, 1, SCAN_ELEVATION, size=side, up=look.up, front=look.front)[0]
    with rm.Renderer(scan, look.march) as renderer:
        return look, renderer.render(camera, look.background)


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_values_is_told_from_them(name):
    scan, kind = KINDS[name]
    found = kind_of(scan.as_volume(), scan.unit)
    assert found.name == kind
    assert found.ground < found.top and np.isfinite([found.low, found.high]).all()
    low, high = scan.range
    assert found.iso is None or low < found.iso < high


@pytest.mark.parametrize("name", ALL)
def test_the_picture_is_neither_empty_nor_saturated_and_fills_the_frame(name):
    scan, _ = ALL[name]
    look, seen = pictured(scan)
    met = seen.opacity > 0.1
    assert look.march.mode == "transfer" and look.background == (0, 0, 0)
    assert 0.03 < met.mean() < 0.85
    for corner in (np.s_[:4, :4], np.s_[:4, -4:], np.s_[-4:, :4], np.s_[-4:, -4:]):
        assert not met[corner].any()  # air is clear
    rows, columns = (np.flatnonzero(met.any(axis)) for axis in (1, 0))
    assert max(np.ptp(rows), np.ptp(columns)) + 1 >= 0.7 * SIDE
    assert min(rows[0], columns[0]) >= 1 and max(rows[-1], columns[-1]) <= SIDE - 2  # and nothing is cut off
    grey = seen.image.mean(-1)[met]
    assert 0.1 < grey.mean() < 0.97 and np.mean(seen.image.min(-1) > 0.98) < 0.05
    if name != "one value":
        assert np.percentile(grey, 95) - np.percentile(grey, 5) > 0.15


@pytest.mark.parametrize("name", [name for name, (scan, _) in HEADS.items() if "soft" not in name])
def test_up_is_up_and_the_inside_is_solid(name):
    """The hat is above the middle of what is seen, narrow; the body below it, wide and opaque."""
    _, seen = pictured(HEADS[name][0])
    rows = np.flatnonzero((seen.opacity > 0.1).any(1))
    wide, part = (seen.opacity > 0.3).sum(1), np.ptp(rows) // 8
    assert 0 < wide[rows[0] + part] < 0.6 * wide[rows[-1] - part]
    body = seen.opacity[SIDE // 2 : SIDE // 2 + 8, SIDE // 2 - 5 : SIDE // 2 + 5]
    assert body.min() > 0.9


@pytest.mark.parametrize(("world", "turn"), [("LPS", 1), ("RAS", -1), ("LAS", -1)])
def test_a_body_is_seen_from_the_front(world, turn):
    """From where its front is in its world: the nose is nearer than the rest."""
    scan = rm.ScalarVolume(HEAD[:, ::turn].astype(np.uint8), MM, world=world)
    look, seen = pictured(scan)
    assert look.front == (0, -turn, 0)
    depth = np.where(np.isfinite(seen.depth), seen.depth, np.inf)
    row, column = np.unravel_index(depth.argmin(), depth.shape)
    assert abs(column - SIDE / 2) < 8 and abs(row - SIDE / 2) < 20
    flat = np.median(depth[SIDE // 2 : -8, SIDE // 2 - 20 : SIDE // 2 + 20])
    assert depth.min() < flat - 8.0  # [mm]


def test_a_scan_lying_askew_is_framed_as_one_upright():
    """The box of a turned grid is far larger than what is in it."""
    c, s = np.cos(0.6), np.sin(0.6)
    turned = np.array([[c, -s, 0, 9.0], [s, c, 0, 5.0], [0, 0, 1, 0], [0, 0, 0, 1]])
    _, seen = pictured(rm.ScalarVolume(HEAD.astype(np.uint8), turned @ MM))
    rows = np.flatnonzero((seen.opacity > 0.1).any(1))
    assert np.ptp(rows) + 1 >= 0.7 * SIDE


def test_a_small_thing_in_a_large_box_fills_the_frame_and_specks_do_not_count():
    values = 50 + noise(3)
    values[20:27, 22:28, 8:20] = 900
    values[3, 3, 3] = values[33, 2, 30] = 900
    look, seen = pictured(rm.ScalarVolume(values))
    assert look.march.mode == "transfer"
    rows, columns = (np.flatnonzero((seen.opacity > 0.5).sum(axis) > 5) for axis in (1, 0))  # more than specks have
    assert max(np.ptp(rows), np.ptp(columns)) + 1 >= 0.7 * SIDE


def test_nothing_but_noise_is_the_mean_along_rays():
    scan = rm.ScalarVolume(noise(10) + 100)
    look = default_look(scan)
    assert look.kind.name == "level" and look.march.mode == "average"
    np.testing.assert_allclose(farthest_seen_points(scan.as_volume(), look.march).max(0), N - 1)


def test_what_a_user_chose_is_kept():
    """A ground of its own; the table that it was fitted through, without light; colours are no scan."""
    scan = HEADS["mask"][0]
    assert default_look(replace(scan, background=(0.2, 0.3, 0.4))).background == (0.2, 0.3, 0.4)
    table = rm.TransferFunction.of_colormap("bone", 0, 1)
    fitted = replace(scan, provenance={"settings": {"transfer": table.record()}})
    look = default_look(fitted)
    assert look.march.shading is None and look.background == (1, 1, 1)
    np.testing.assert_array_equal(look.march.transfer.rgba, table.rgba)
    cloud = rm.Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(6, 6, 6))
    look = default_look(cloud)
    assert look.march == rm.March() and look.front is None and look.background == cloud.background


def test_a_clipped_scan_is_framed_on_what_is_left():
    volume = HEADS["mask"][0].as_volume()
    clip = rm.Clip(planes=[((0, 0, 1), 24.0)])
    points = farthest_seen_points(volume, default_look(volume).march, clip)
    assert points[:, 2].min() >= 24.0 and points[:, 2].max() > 28


def test_python_without_a_march_sees_the_same_table_lit():
    scan = HEADS["8 bit"][0]
    camera = rm.Camera.look_at((18, -90, 18), (18, 18, 18), width=32, height=32)
    march = rm.March(mode="transfer", transfer=default_table(scan.as_volume()), shading=rm.Shading())
    np.testing.assert_array_equal(rm.render(scan, camera), rm.render(scan, camera, march=march))


def test_tables_by_name_are_tables():
    volume = HEADS["8 bit"][0].as_volume()
    for name in ("ct", "ct-skin", "ct-bone", "ct-lung"):
        table = named_table(volume, name, 0, 1)
        assert table(-1000.0)[3] == 0 and table(1000.0)[3] > 0.4
    signed = named_table(volume, "signed", 0.2, 1.0)
    assert not signed([-0.19, 0.0, 0.19])[:, 3].any() and (signed([-1.0, 1.0])[:, 3] == 0.9).all()
    down = named_table(volume, "solid", 100, 20)
    assert down(110.0)[3] == 0 and down(20.0)[3] > 0.9
    labels = named_table(volume, "labels", 0, 3, [1, 2, 3])
    assert not labels([0.4, 1.5, 2.5])[:, 3].any() and (labels([1.0, 2.0, 3.0])[:, 3] == 0.7).all()
    assert len({tuple(colour) for colour in labels([1.0, 2.0, 3.0])[:, :3]}) == 3
    with pytest.raises(rm.RaymarchError, match="hardly tells apart"):
        named_table(volume, "solid", 1e7, 1e7 + 1)
