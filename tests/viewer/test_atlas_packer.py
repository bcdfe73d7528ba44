"""Law: pages get the volume in parts that make up its atlas, packed in slices; a fit's too, which keeps its bytes."""

from __future__ import annotations

import zlib

import drive
import numpy as np
import pytest
from wires import FakeWire, around

import raymarch as rm
from raymarch.device.brick_grid import grid_for
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import preset
from raymarch.viewer.fit_viewer import FitViewer
from raymarch.viewer.page.atlas import finish, pack_atlas
from raymarch.viewer.page.record import packed_bytes
from raymarch.viewer.page.thinner import fewer_samples, thinner
from raymarch.viewer.pictures import atlas_packer
from raymarch.viewer.pictures.atlas_packer import LEVEL, MAX_BYTES, PART_BYTES, STEPS, AtlasPacker
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.picture_source import FitSource, VolumeSource
from raymarch.viewer.viewer import Viewer

RNG = np.random.default_rng(56)
SETTINGS = preset("quick", resolution=16, steps=40, rays=512, sh_degree=0, slots=1)


def noise(shape=(19, 12, 14), boxes=1):
    count = (shape[0] * boxes, *shape[1:])
    density, features = RNG.normal(size=count) * 3, RNG.normal(size=(*count, 3))
    place = np.diag([0.1, 0.1, 0.1, 1])
    return rm.Volume(density, features, place, rm.Activation("softplus", -2, 0.05), boxes=boxes)


@pytest.fixture(scope="module")
def maker():
    with FrameMaker(noise(), name="noise") as made:
        yield made


def packed(packer):
    """What a packer makes, and what it told."""
    packer.wanted, told = True, []
    while packer.busy:
        told += packer.work()
    return packer.packed, told


def bytes_of(volume):
    return volume.density.tobytes() + volume.features.tobytes()


def test_parts_make_up_the_atlas_of_the_volume(maker):
    made, told = packed(AtlasPacker(maker.source))
    assert told[-1] == made.header and made.header["parts"] == len(made.parts)
    assert all(len(part) == PART_BYTES for part in made.parts[:-1])
    whole = finish(packed_bytes(pack_atlas(maker.source.seen, STEPS), LEVEL))
    assert b"".join(made.parts) == whole and made.nbytes == len(whole)
    head = made.record
    want = 4 * np.prod(head["bricks"]) + 8 * head["channels"] * head["entries"] + head["channels"] * head["count"] * 729
    assert len(zlib.decompress(whole)) == want


def test_work_in_slices_of_any_size_is_the_same_atlas(monkeypatch):
    volume = noise((40, 21, 26), boxes=2)
    whole = pack_atlas(volume)
    monkeypatch.setattr("raymarch.viewer.page.atlas.SLAB_NUMBERS", 1)
    monkeypatch.setattr("raymarch.viewer.page.atlas.GROUP_NUMBERS", 1)
    small = pack_atlas(volume)
    assert np.array_equal(whole.table, small.table) and np.array_equal(whole.ranges, small.ranges)
    assert np.array_equal(whole.planes, small.planes)


@pytest.mark.parametrize("boxes", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_samples_thinned_on_the_device_are_those_of_numpy(boxes, sparse):
    volume = noise((24, 19, 17), boxes)
    volume = volume.sparse() if sparse else volume
    expected, shape = thinner(volume, 0.5), fewer_samples(volume.box_shape, 0.5)
    with grid_for(volume) as grid:
        grid.upload(volume)
        for box in range(boxes):
            at = slice(box * shape[0], (box + 1) * shape[0])
            for first, last in ((0, 5), (5, shape[0])):
                sigma, features = grid.download_thinned(shape, box, (first, last))
                part = slice(at.start + first, at.start + last)
                assert np.allclose(sigma, expected.sigma()[part], rtol=1e-5, atol=1e-4)  # the twin keeps single
                assert np.allclose(features, expected.features[part], rtol=1e-5, atol=1e-5)


def test_a_scan_that_has_no_room_for_colours_is_thinned_too():
    scan = rm.ScalarVolume(RNG.normal(size=(24, 19, 17)).astype(np.float32), np.eye(4))
    source = VolumeSource(scan)
    with source.buffer, source.grid as grid:
        assert grid.fields.features is None
        expected, shape = thinner(source.seen, 0.5), fewer_samples(source.seen.box_shape, 0.5)
        sigma, features = grid.download_thinned(shape, 0, (0, shape[0]))
        assert np.allclose(sigma, expected.sigma(), rtol=1e-5, atol=1e-4) and not features.any()
        packer = AtlasPacker(source, max_bytes=5_000)
        made, _ = packed(packer)
        assert packer.why == "" and made.record["samples"] < made.record["of"] == [24, 19, 17]


def test_what_is_too_large_is_thinned(maker):
    made, _ = packed(AtlasPacker(maker.source, max_bytes=10_000))
    assert made.record["samples"] < made.record["of"] == [19, 12, 14]
    assert made.record["count"] * 4 * 729 < 30_000
    box = np.array(made.record["indexFromWorld"]).reshape(4, 4) @ np.append(maker.source.seen.box[1], 1)
    assert np.allclose(box[:3], np.array(made.record["shape"]) - 1)


def test_a_page_gets_parts_of_the_version_that_there_is(maker, monkeypatch):
    monkeypatch.setattr(atlas_packer, "PART_BYTES", 1000)
    wire = FakeWire()
    with FrameMaker(noise(), name="noise") as own:
        viewer = Viewer(wire, own)
        assert wire.told("scene")[-1][0]["atlas"] == {"key": own.atlas.key, "why": ""}
        for page in (1, 2):
            wire.say(page, type="open")
        wire.say(1, type="atlas")
        while viewer.busy or wire.inbox._waiting:
            viewer.work()
        ((announced, _),) = [told for told in wire.told("atlas", 1) if "parts" in told[0]]
        assert not wire.told("atlas", 2) and announced["parts"] > 2
        for part in (0, announced["parts"] - 1, announced["parts"], -1, "x"):
            wire.say(1, type="atlas", version=announced["version"], part=part)
        wire.say(1, type="atlas", version=announced["version"] + 5, part=0)
        viewer.work()
        parts = [(header["part"], data) for header, data in wire.told("atlas", 1) if "part" in header]
        assert parts == [(i, own.atlas.packed.parts[i]) for i in (0, announced["parts"] - 1)]
        assert wire.told("atlas", 1)[-1][0] == announced
        errors = [header["text"] for header, _ in wire.told("error", 1)]
        assert len(errors) == 3 and all(line.startswith("atlas: part is ") and "\n" not in line for line in errors)


def test_a_page_that_turns_by_itself_is_sent_no_pictures(maker):
    wire = FakeWire()
    with FrameMaker(noise(), name="noise") as own:
        viewer = Viewer(wire, own)
        wire.say(1, type="open")
        wire.say(1, **around(1))
        wire.say(1, type="turning")
        viewer.work()
        assert not viewer.busy and not viewer.moving and not wire.told("frame")
        wire.say(1, **around(2))
        while viewer.busy or wire.inbox._waiting:
            viewer.work()
        assert wire.told("frame", 1)[-1][0]["final"]


def test_an_activation_of_ones_own_is_drawn_by_the_server_alone():
    own = rm.DensityActivation("mine", lambda x: np.maximum(x, 0) * 2, lambda y: y / 2, None, None, empty=0.0)
    source = VolumeSource.__new__(VolumeSource)
    source.seen = rm.Volume(np.zeros((2, 2, 2)), np.zeros((2, 2, 2, 3)), np.eye(4), rm.Activation(own))
    packer = AtlasPacker(source)
    packer.wanted = True
    assert not packer.busy and packer.why == "activation 'mine' is your own, and the page's shader does not have it"


def test_what_cannot_be_packed_leaves_it_to_the_server(maker, monkeypatch):
    def none(*_):
        raise MemoryError("no room\nat all")
        yield

    monkeypatch.setattr(atlas_packer, "packing", none)
    made, told = packed(AtlasPacker(maker.source))
    assert made is None and told[-1] == {"type": "atlas", "why": "no room at all"}


def test_a_fit_that_is_packed_again_and_again_ends_with_the_same_bytes(monkeypatch):
    monkeypatch.setattr("raymarch.viewer.fit_viewer.TimeShare.due", True)
    monkeypatch.setattr(atlas_packer, "FIT_SHARE", 1e9)
    unseen = fit(drive.ball_views(), SETTINGS, box=drive.BALL_BOX)
    with FitViewer(FakeWire()) as viewer:
        wire = viewer.server
        wire.say(1, type="open")
        wire.say(1, type="atlas")

        def between(fitter):
            wire.say(1, type="turning")
            return viewer.between(fitter)

        seen = fit(drive.ball_views(), SETTINGS, box=drive.BALL_BOX, ready=viewer.attach, between=between)
        versions = [header["version"] for header, _ in wire.told("atlas", 1) if "parts" in header]
    assert bytes_of(seen.volume) == bytes_of(unseen.volume)
    assert len(versions) > 3 and versions == sorted(set(versions)) and not wire.told("frame")


def test_the_atlas_of_a_fit_is_of_its_volume():
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        for _ in range(20):
            fitter.step()
        source = FitSource(fitter)
        made, _ = packed(AtlasPacker(source))
        volume = fitter.volume()
        atlas = pack_atlas(volume, STEPS)
        source.close()
    assert made.record["shape"] == list(volume.shape) and made.record["count"] == atlas.count
    assert made.record["background"] == list(volume.background)
    raw = zlib.decompress(b"".join(made.parts))
    ranges = np.frombuffer(raw, "<f4", 2 * atlas.ranges.size // 2, 4 * atlas.table.size).reshape(atlas.ranges.shape)
    sigma = [volume.activation.sigma(one[:, 0].sum(-1)) for one in (ranges, atlas.ranges)]
    assert np.allclose(*sigma, rtol=1e-4, atol=1e-3 * sigma[1].max())


def test_a_fits_time_is_bounded(monkeypatch):
    """Between two volumes of a fit lies twenty times the time that the last one took."""
    clock = [0.0]
    monkeypatch.setattr(atlas_packer.time, "monotonic", lambda: clock[0])
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        source = FitSource(fitter)
        packer = AtlasPacker(source, MAX_BYTES)
        packed(packer)
        packer._spent = 0.5
        assert not packer.busy
        fitter.step()
        assert not packer.busy
        clock[0] += 10.1
        assert packer.busy
        packer.part(packer.packed.version, -1 + len(packer.packed.parts))
        assert packer.busy
        source.close()
