"""Law: box and hull hold the object and little more; where nothing can be found, the error says what to give."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import single as worker

from raymarch.device.image_store import ImageStore
from raymarch.diagnosis.extent import distant_cameras
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.plan.bounds import find_box, visual_hull
from raymarch.fitting.plan.survey import Survey
from raymarch.geometry.boxes import grid_of_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.geometry.pose import look_at
from raymarch.views.agreement import dissenters, no_place_reason
from raymarch.views.focus import focus
from raymarch.views.views import Views

RADIUS = 0.6
DISTANCE = 4.0
PLACES = [(0.0, 0.0, 0.0), (0.2, -0.15, 0.1), (7.0, -3.0, 20.0)]


def around(centre, like=None):
    """Two rings of cameras, above and below."""
    like = like or Camera.look_at((1, 0, 0), fov=0.6, width=64, height=48)
    return [c for angle in (0.5, -0.4) for c in orbit(centre, DISTANCE, 8, elevation=np.rad2deg(angle), like=like)]


def masks(cameras, *centres):
    """RGBA images of balls, opaque where the ray through a pixel's centre meets one."""
    images = []
    for camera in cameras:
        rays = camera.rays()
        hit = np.zeros(len(rays.origin), bool)
        for centre in centres:
            away = rays.origin - centre
            along = np.sum(away * rays.direction, axis=1)
            hit |= (along < 0) & (along**2 - np.sum(away**2, axis=1) + RADIUS**2 > 0)
        images.append(np.where(hit[:, None], (200, 90, 30, 255), 0).reshape(camera.height, camera.width, 4))
    return np.array(images, np.uint8)


def box_of(views):
    with ImageStore(views) as store:
        return find_box(Survey(views), store)


def rod(cameras):
    """RGBA images of five balls in a row, from x = -2.6 to 2.6."""
    return masks(cameras, *((x, 0, 0) for x in range(-2, 3)))


def rings(centre, distance, count, fov=0.6):
    """Two rings of so many cameras each, at a distance from what they look at."""
    like = Camera.look_at((1, 0, 0), fov=fov, width=64, height=64)
    return [camera for angle in (30, -25) for camera in orbit(centre, distance, count, elevation=angle, like=like)]


@pytest.mark.parametrize("close", [60, 20, 0])  # the largest first: what it takes serves all that come
def test_close_ups_of_a_part_leave_the_box_that_of_the_whole(close, caplog):
    """However many more they are than the views of the whole, of which there are sixteen."""
    cameras = rings((0, 0, 0), 10.0, 8) + (rings((2, 0, 0), 3.0, close) if close else [])
    lower, upper = box_of(Views(cameras, rod(cameras)))
    assert (lower <= (-2.6, -RADIUS, -RADIUS)).all()
    assert (upper >= (2.6, RADIUS, RADIUS)).all()
    assert (upper - lower <= np.array([1.2, 1.6, 1.6]) * (5.2, 2 * RADIUS, 2 * RADIUS)).all()
    assert "leaves out" not in caplog.text


@pytest.mark.parametrize("centre", PLACES)
def test_box_of_a_ball_holds_it_and_is_little_larger(centre):
    """The cameras look at it, or a little past it."""
    cameras = around(np.round(centre))
    lower, upper = box_of(Views(cameras, masks(cameras, centre)))
    assert (lower <= np.array(centre) - RADIUS).all()
    assert (upper >= np.array(centre) + RADIUS).all()
    assert (upper - lower).max() < 1.3 * 2 * RADIUS


def test_a_long_thing_taken_part_by_part_has_a_box_of_all_of_it(caplog):
    """One end is seen by four times as many views as any other part."""
    cameras = [c for x in range(-2, 3) for c in rings((x, 0, 0), 4.5, 12 if x == -2 else 3, fov=0.5)]
    lower, upper = box_of(Views(cameras, rod(cameras)))
    assert (lower <= (-2.6, -RADIUS, -RADIUS)).all()
    assert (upper >= (2.6, RADIUS, RADIUS)).all()
    assert "leaves out" not in caplog.text


@pytest.mark.parametrize("views", [0, 1, 3])
def test_what_views_show_where_the_others_show_nothing_is_said_and_moves_no_box(views, caplog):
    """A stripe along their edge, in which cells right before them would lie."""
    wanted, images = box_of(ball()), ball().images.copy()
    images[:views, :, :8, 3] = 255
    np.testing.assert_array_equal(box_of(replace(ball(), images=images)), wanted)
    said = f"of what {views} of 16 views show that were asked; if that belongs to it, give it: box=, --box"
    assert said in caplog.text if views else "leaves out" not in caplog.text


def test_views_of_several_sizes_give_the_box_of_one():
    """Half of them are half as large; a mask over what one of them would show empty takes nothing from the rest."""
    large, small = around((0, 0, 0)), around((0, 0, 0), Camera.look_at((1, 0, 0), fov=0.6, width=32, height=24))
    cameras = [pair[i % 2] for i, pair in enumerate(zip(large, small, strict=True))]
    images = [masks([camera], (0, 0, 0))[0] for camera in cameras]
    lower, upper = box_of(Views(cameras, images))
    assert (lower <= -RADIUS).all()
    assert (upper >= RADIUS).all()
    assert (upper - lower).max() < 1.35 * 2 * RADIUS


def test_what_a_mask_takes_out_carves_nothing():
    """A view whose object was wiped out leaves nothing to agree on, unless a mask says that nobody knows."""
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    images[3, :, 32:] = 0
    wiped = Views(cameras, images)
    mask = np.ones((48, 64), bool)
    mask[:, 32:] = False
    masked = replace(wiped, masks=[mask if i == 3 else None for i in range(len(cameras))])
    box = np.array([(-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)])
    held = []
    for views in (wiped, masked):
        with ImageStore(views) as store:
            held.append((visual_hull(store, box, (20, 20, 20)) > 0).sum())
    assert held[0] < 0.7 * held[1]
    assert not dissenters(masked, box).any()


def test_hull_of_a_ball_holds_it_and_is_little_larger():
    """Every cell that the ball reaches into is kept, by all views; the cells kept have not 2.5 times its volume."""
    cameras = around((0, 0, 0))
    views = Views(cameras, masks(cameras, (0, 0, 0)))
    box = np.array([(-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)])
    with ImageStore(views) as store:
        seen = visual_hull(store, box, (20, 20, 20))
    middles = np.stack(np.meshgrid(*[np.linspace(-0.95, 0.95, 20)] * 3, indexing="ij"), -1)
    reach = np.linalg.norm(np.maximum(np.abs(middles) - 0.05, 0), axis=-1)  # from the ball's centre to the cell
    inside = reach < RADIUS - 0.05  # a pixel is 0.04 wide there, and its centre may miss the rim
    assert (seen[inside] == len(cameras)).all()
    assert np.sum(seen > 0) * 0.1**3 < 2.5 * 4 / 3 * np.pi * RADIUS**3


def test_a_cell_that_no_view_sees_is_no_hull():
    """-1 where a view shows emptiness, and where none looks."""
    cameras = around((0, 0, 0))
    full = np.full_like(masks(cameras, (0, 0, 0)), 255)  # nothing is shown empty: what remains is what is looked at
    with ImageStore(Views(cameras, full)) as store:
        far = visual_hull(store, [(30, 30, 30), (31, 31, 31)], (2, 2, 2))
        above = visual_hull(store, [(0, 0, 50), (1, 1, 51)], (2, 2, 2))
        middle = visual_hull(store, [(-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)], (2, 2, 2))
    assert (far >= 0).all()
    assert (above == -1).all()
    assert (middle == len(cameras)).all()


def test_what_panoramas_see_at_their_poles_is_looked_at():
    """Two on one vertical, between them a ball, whose middle is at the poles of both, and seen wholly by neither."""
    cameras = [Camera.panorama((0, 0, z), width=64) for z in (-2.5, 2.5)]
    full = np.full((2, 32, 64, 4), 255, np.uint8)
    for images, clear in ((full, False), (masks(cameras, (0, 0, 0)), True)):
        with ImageStore(Views(cameras, images)) as store:
            seen = visual_hull(store, [(-1, -1, -1), (1, 1, 1)], (9, 9, 9))
        assert (seen[4, 4] >= 0).all()
        assert (seen == -1).any() == clear


def test_the_hull_of_a_ball_is_as_symmetrical_as_its_cameras():
    """Which stand at every eighth of a circle: mirrored in x and in y they are themselves."""
    cameras = around((0, 0, 0))
    with ImageStore(Views(cameras, masks(cameras, (0, 0, 0)))) as store:
        hull = visual_hull(store, [(-1, -1, -1), (1, 1, 1)], (12, 12, 12)) >= 0
    assert hull.any()
    assert (hull == hull[::-1]).all()
    assert (hull == hull[:, ::-1]).all()


def test_the_faintest_alpha_counts_as_empty():
    """Up to 2 of 255, as compression leaves behind; 3 shows something."""
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    hulls = []
    for faint in (0, 2, 3):
        each = images.copy()
        each[..., 3] = np.maximum(each[..., 3], faint)
        with ImageStore(Views(cameras, each)) as store:
            hulls.append(visual_hull(store, [(-1, -1, -1), (1, 1, 1)], (12, 12, 12)))
    np.testing.assert_array_equal(hulls[0], hulls[1])
    assert (hulls[0] == -1).any()
    assert (hulls[2] >= 0).all()


def test_a_larger_ball_has_a_larger_hull():
    """More opaque pixels never carve more."""
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    more = images.copy()
    more[:, 10:30, 5:40, 3] = 255
    hulls = []
    for each in (images, more):
        with ImageStore(Views(cameras, each)) as store:
            hulls.append(visual_hull(store, [(-1, -1, -1), (1, 1, 1)], (12, 12, 12)) >= 0)
    assert (hulls[1] | ~hulls[0]).all()
    assert hulls[1].sum() > hulls[0].sum()


def test_images_without_alpha_get_the_cameras_field_of_view():
    """A cube about where the axes meet, wide enough for all that the cameras see there."""
    cameras = around((1, 2, 3))
    lower, upper = box_of(Views(cameras, masks(cameras, (1, 2, 3))[..., :3]))
    np.testing.assert_allclose((lower + upper) / 2, (1, 2, 3), atol=1e-12)
    half = (upper - lower) / 2
    np.testing.assert_allclose(half, half[0])
    assert DISTANCE * np.tan(0.3) <= half[0] < 1.5 * DISTANCE * np.tan(0.3)


def parallel(count):
    """Cameras side by side that look the same way."""
    return [Camera.from_fov(look_at((x, -4, 0), (x, 0, 0)), 0.6, 16, 16) for x in range(count)]


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("cameras", [parallel(1), parallel(3)], ids=["one", "three parallel"])
def test_axes_that_meet_nowhere_ask_for_a_box(cameras, channels):
    views = Views(cameras, np.full((len(cameras), 16, 16, channels), 255, np.uint8))
    with pytest.raises(RaymarchError, match="--box") as error:
        box_of(views)
    assert "\n" not in str(error.value)


def test_cameras_in_one_point_ask_for_a_box():
    cameras = [Camera.from_fov(look_at((0, 0, 0), to), 0.6, 16, 16) for to in [(1, 0, 0), (0, 1, 0), (-1, 1, 0.5)]]
    with pytest.raises(RaymarchError, match="--box"):
        box_of(Views(cameras, np.full((3, 16, 16, 3), 255, np.uint8)))


def test_transparent_images_are_an_error():
    cameras = around((0, 0, 0))
    with pytest.raises(RaymarchError, match="transparent"):
        box_of(Views(cameras, np.zeros((len(cameras), 48, 64, 4), np.uint8)))


def posed(views, pose_of):
    """The views with other poses, by their number and pose."""
    cameras = [
        replace(c, world_from_camera=pose_of(i, np.array(c.world_from_camera))) for i, c in enumerate(views.cameras)
    ]
    return replace(views, cameras=cameras)


@cache
def ball():
    """Views of the ball."""
    cameras = around((0, 0, 0))
    return Views(cameras, masks(cameras, (0, 0, 0)), [f"r_{i}" for i in range(len(cameras))])


FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
CONVENTIONS = {
    "are OpenCV's (y down, z forward): negate columns 1 and 2": lambda _, pose: pose @ FLIP,
    "are camera_from_world (world-to-camera): invert each matrix": lambda _, pose: np.linalg.inv(pose),
    "are camera_from_world (world-to-camera) in OpenCV's axes": lambda _, pose: np.linalg.inv(pose @ FLIP),
}


def box_without_alpha(views):
    """The box by the cameras alone, for which nothing has to be on the device."""
    return find_box(Survey(replace(views, images=views.images[..., :3])), None)


@pytest.mark.parametrize(
    ("border", "cure"), [(0, "--preset photos --set boxes=6 a scene"), (None, "--preset photos a")]
)
def test_a_box_of_all_that_the_cameras_see_comes_with_a_preset_that_takes_others(border, cure, caplog):
    """Borders of one colour make the preset take one box as well, unless more are asked for."""
    images = np.random.default_rng(0).integers(0, 256, (len(ball()), 48, 64, 3), dtype=np.uint8)
    if border is not None:
        images[:, :3], images[:, -3:], images[:, :, :3], images[:, :, -3:] = (border,) * 4
    find_box(Survey(replace(ball(), images=images)), None)
    assert cure in caplog.text


def test_alpha_that_is_opaque_everywhere_carves_no_box():
    opaque = ball().images.copy()
    opaque[..., 3] = 255
    np.testing.assert_array_equal(find_box(Survey(replace(ball(), images=opaque)), None), box_without_alpha(ball()))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_poses_of_another_convention_are_told(convention):
    views = posed(ball(), CONVENTIONS[convention])
    with pytest.raises(RaymarchError, match="maybe the poses " + re.escape(convention)) as error:
        box_without_alpha(views)
    assert "\n" not in str(error.value)


def test_poses_in_opencv_s_convention_are_told_by_the_hull():
    views = posed(ball(), lambda _, pose: pose @ FLIP)
    with pytest.raises(RaymarchError, match="transparent wherever the views agree: maybe the poses are OpenCV's"):
        box_of(views)


def test_a_convention_is_told_of_cameras_that_do_not_quite_meet(caplog):
    """Their inverses stand in no one point."""
    moves = 0.15 * np.random.default_rng(0).normal(size=(16, 3))

    def inverse(i, pose):
        pose[:3, 3] += moves[i]
        return np.linalg.inv(pose)

    box_without_alpha(posed(ball(), inverse))
    assert "cameras look away from the point where the axes meet; maybe the poses are camera_from_world" in caplog.text


def moved(i, by):
    return lambda k, pose: pose + (k == i) * np.pad(np.array([by]).T, ((0, 1), (3, 0)))


def test_a_camera_far_from_the_others_is_named():
    views = posed(ball(), moved(3, (1e6, 0, 0)))
    with pytest.raises(RaymarchError, match=r"view r_3 was taken 1e\+06 world units from the middle .* take it out"):
        find_box(Survey(views), None)


ROUND = np.diag([-1.0, 1.0, -1.0, 1.0])
BALL_BOX = np.array([(-RADIUS,) * 3, (RADIUS,) * 3])
DISSENT = {
    "none": (lambda k, pose: pose, []),
    "moved aside": (moved(5, (0, 3, 1)), [5]),
    "turned round": (lambda k, pose: pose @ (ROUND if k == 7 else np.eye(4)), [7]),
    "two": (lambda k, pose: pose + (k in (0, 15)) * np.pad([[2.0], [2], [0]], ((0, 1), (3, 0))), [0, 15]),
    "all": (lambda k, pose: pose @ ROUND, []),
}


@pytest.mark.parametrize("which", DISSENT)
def test_views_that_dissent_are_found(which):
    """They show the ball elsewhere, or not where all others do; where all are off none is told from the rest."""
    pose_of, found = DISSENT[which]
    assert np.flatnonzero(dissenters(posed(ball(), pose_of), BALL_BOX)).tolist() == found
    assert not dissenters(posed(ball(), pose_of)[3:9], BALL_BOX).any()  # too few to tell


def test_a_view_that_dissents_is_named(caplog):
    box_of(posed(ball(), DISSENT["turned round"][0]))
    assert "view r_7 shows something where the others show nothing" in caplog.text
    assert "1 of 16 cameras look away from the rest (r_7)" in caplog.text


def aside(views):
    """Two images whose ball is not where it should be."""
    images = views.images.copy()
    images[4:6, 4:-4, 4:-4, 3] = 0
    images[4:6, :4, :, 3] = 255
    return replace(views, images=images)


NOTHING = {
    "all of them are transparent all over": lambda views: replace(views, images=views.images * np.uint8([1, 1, 1, 0])),
    "they have only 4 x 3 pixels; take larger ones": lambda views: sized(views, 4, 3),
    "the principal point of r_0, r_1, .* lies outside of the image; check cx, cy": lambda views: replace(
        views, cameras=[replace(c, principal=(200.0, 24.0)) for c in views.cameras]
    ),
    "view r_4, r_5 shows nothing where the others agree; check its pose and alpha": aside,
}


def sized(views, width, height):
    cameras = [c.scaled(width / c.width) for c in views.cameras]
    return replace(views, cameras=cameras, images=np.full((len(views), height, width, 4), 255, np.uint8))


@pytest.mark.parametrize("cause", NOTHING)
def test_why_no_place_is_found_is_told(cause):
    views = NOTHING[cause](ball())
    assert re.match(cause, no_place_reason(views, *focus(views.cameras)))


def test_views_of_one_pose_are_told():
    with pytest.raises(RaymarchError, match="all 16 views have the same pose"):
        find_box(Survey(posed(ball(), lambda *_: np.eye(4))), None)


def test_views_far_from_the_origin_are_not_of_one_pose():
    nadir = Camera.look_at((0, 0, 50), (0, 0, 0), up=(0, 1, 0), width=8, height=8)
    apart = [np.array([1e6 + 2 * i, 5e6 + 2 * j, 0]) for i in range(3) for j in range(3)]
    moved = [nadir.world_from_camera + np.pad(by[:, None], ((0, 1), (3, 0))) for by in apart]
    with pytest.raises(RaymarchError, match="meet in no point"):
        focus([replace(nadir, world_from_camera=pose) for pose in moved])


def test_a_world_that_single_precision_does_not_resolve_is_doubted():
    far = posed(ball(), lambda _, pose: pose + np.pad([[5e6], [4e5], [0]], ((0, 1), (3, 0))))
    assert "5e+06 world units from the origin, where single precision is good to 0.6" in distant_cameras(far).message


def outwards(fov):
    """Cameras on a ring that look away from its middle, and images without alpha."""
    like = Camera.look_at((1, 0, 0), fov=fov, width=16, height=16)
    cameras = [
        replace(c, world_from_camera=c.world_from_camera @ ROUND)
        for e in (10, -20)
        for c in orbit((0, 0, 0), 1, 6, elevation=e, like=like)
    ]
    return Views(cameras, np.full((12, 16, 16, 3), 99, np.uint8))


def test_cameras_that_look_outwards_are_told_to_give_a_box(caplog):
    """Those that see their box, as they stand in it, go on."""
    with pytest.raises(RaymarchError, match="if the cameras do look outwards, the box cannot be found, give it: box="):
        find_box(Survey(outwards(0.6)), None)
    lower, upper = find_box(Survey(outwards(1.8)), None)
    assert (lower < -1).all()
    assert (upper > 1).all()
    assert "all is well if they do look outwards" in caplog.text


@pytest.mark.parametrize(
    ("kind", "said"), [("clear", "transparent all over"), ("white", "of one colour all over, white")]
)
def test_images_that_show_nothing_are_not_fitted(kind, said):
    """Whether a box is given or not."""
    images = np.zeros_like(ball().images) if kind == "clear" else np.full_like(ball().images[..., :3], 255)
    for box in (None, BALL_BOX):
        with pytest.raises(
            RaymarchError, match=f"all 16 images of 64 x 48 are {said}, so there is nothing to fit; check"
        ):
            Fitter(replace(ball(), images=images), "quick", box=box)


def test_box_in_f32_is_that_in_f64(single):
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    wanted = worker.box(cameras, images)
    np.testing.assert_allclose(single(worker.box, cameras, images), wanted, rtol=0, atol=2 * np.ptp(wanted) / 64)


@pytest.mark.parametrize("size", [(1, 1, 1), (2.0, 0.31, 1.3), (0.01, 1, 100)])
@pytest.mark.parametrize("resolution", [4, 17])
def test_grid_of_a_box_has_cubic_voxels_and_holds_it(size, resolution):
    box = np.array([np.zeros(3), size]) + (3, -4, 5)
    grown, shape = grid_of_box(box, resolution)
    voxels = (grown[1] - grown[0]) / (np.array(shape) - 1)
    np.testing.assert_allclose(voxels, max(size) / (resolution - 1), rtol=1e-9)
    assert max(shape) == resolution
    assert min(shape) >= 4
    assert (grown[0] <= box[0] + 1e-9).all()
    assert (grown[1] >= box[1] - 1e-9).all()
    np.testing.assert_allclose(grown.mean(0), box.mean(0), rtol=1e-12)
