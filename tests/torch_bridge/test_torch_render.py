"""Law: TorchRender is rm.render as a function of tensors; its derivatives are those of differences, in every mode."""

from __future__ import annotations

import threading
from dataclasses import replace

import cases
import numpy as np
import pytest
from lenses import LENSES
from skips import require_extra

torch = require_extra("torch", "torch")

import torch_twin as twin  # noqa: E402

import raymarch as rm  # noqa: E402
from raymarch.geometry.ndc import ndc_of_frustum  # noqa: E402
from raymarch.rendering import medium  # noqa: E402
from raymarch.torch import march_session  # noqa: E402

# Forward mode has torch compile functions of its own, which warns.
pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")]
EXACT = rm.March(step=0.7, min_transmittance=0.0, min_weight=0.0)
NAMES = ("density", "features", "background", "pose", "focal", "principal", "coefficients")
TABLE = rm.TransferFunction([0.1, 0.6, 1.4, 2.5], np.eye(4, 3) * 0.6 + 0.2, [0.1, 0.5, 0.3, 0.7], 0.8)
CLIP = rm.Clip(planes=[((0.3, 0.5, 0.8), -0.1)])
# Mode, degree and activations of each gradcheck, the lens of its camera, a march's own settings, and whether forward
# mode is tried too.
CHECKED = [
    ("emission-absorption", 1, "softplus", "sigmoid", "opencv", {}, True),
    ("transfer", 1, "softplus", "sigmoid", "orthographic", {"transfer": TABLE, "clip": CLIP}, False),
    ("isosurface", 1, "exponential", "clamped", "pinhole", {"iso": 1.2}, False),
]


def tensor(value):
    return torch.tensor(np.array(value), dtype=torch.float64, requires_grad=True)


def case(degree=1, density="softplus", colour="sigmoid", lens="pinhole", size=(3, 2)):
    """A random volume, and a camera of few pixels that sees it."""
    volume = cases.volume("rotated", degree, density, colour)
    camera = cases.cameras(volume)[0]
    shrink = size[0] / camera.width
    scaled = {name: tuple(shrink * np.array(getattr(camera, name))) for name in ("focal", "principal")}
    own = next(each for each in (*LENSES, rm.Lens("orthographic")) if each.model == lens)
    if own.parallel:  # whose focal length is in pixels per world unit
        scaled["focal"] = tuple(np.array(scaled["focal"]) / 3)
    return volume, replace(camera, **scaled, width=size[0], height=size[1], lens=own)


def leaves(volume, cameras):
    """What an image depends on, as leaves, by name."""
    values = (volume.density, volume.features, (0.2, 0.3, 0.4), np.zeros((len(cameras), 6)))
    more = (cameras.focal, cameras.principal, cameras.coefficients)
    return dict(zip(NAMES, map(tensor, (*values, *(each.numpy() for each in more))), strict=True))


def seen_of(render, cameras, x, depth=True):
    """A rendering of leaves; those that are not in `NAMES` are a mode's own."""
    put = replace(cameras, **{name: x[name] for name in NAMES[4:]}).moved(x["pose"])
    own = {name: value for name, value in x.items() if name not in NAMES}
    return render(x["density"], x["features"], put, background=x["background"], depth=depth, **own)


def numbers_of(seen):
    """Image, opacity, and depth where it is finite."""
    return seen.image, seen.opacity, torch.where(seen.depth.isfinite(), seen.depth, 0.0)


@pytest.fixture
def plain():
    """A renderer, its volume and camera; closed after each test, so that the next stands on the same memory."""
    volume, camera = case(size=(6, 5))
    with rm.TorchRender(volume, EXACT, slots=2) as render:
        yield render, volume, camera


@pytest.mark.parametrize(
    ("mode", "degree", "density", "colour", "lens", "own", "forward"), CHECKED, ids=[row[0] for row in CHECKED]
)
def test_gradcheck(mode, degree, density, colour, lens, own, forward):
    """Of image, opacity and depth, by volume, background, camera and a mode's own numbers; differences are torch's."""
    volume, camera = case(degree, density, colour, lens)
    cameras = rm.TorchCameras.of(camera)
    x = leaves(volume, cameras)
    x |= {"table": tensor(TABLE.rgba)} if mode == "transfer" else {name: tensor(value) for name, value in own.items()}
    with rm.TorchRender(volume, replace(EXACT, mode=mode, **own), slots=2) as render:

        def numbers(*values):
            return numbers_of(seen_of(render, cameras, dict(zip(x, values, strict=True))))

        seen = numbers(*x.values())
        assert all((part > 0).any() for part in seen)
        assert torch.autograd.gradcheck(numbers, tuple(x.values()), fast_mode=True, check_forward_ad=forward)
        few = lambda *some: numbers(*(x[name].detach() for name in NAMES[:2]), *some)  # noqa: E731
        assert torch.autograd.gradcheck(few, tuple(x.values())[2:])


@pytest.mark.parametrize("how", [{}, {"jitter": 1.0, "step_jitter": 0.3, "seed": 4}, {"min_weight": 1e-3}], ids=str)
def test_image_opacity_and_depth_are_those_of_render(how):
    """Of each camera of a batch, whatever the number of rays a launch; single precision is the other side's."""
    volume, camera = case(size=(6, 5))
    volume = replace(volume, background=(0.3, 0.5, 0.1))
    march = replace(EXACT, batch=13, **how)
    several = [camera, replace(camera, world_from_camera=cases.cameras(volume)[1].world_from_camera)]
    tensors = rm.TorchVolume.of(volume)
    with rm.TorchRender(volume, march, slots=2) as render:
        got = render(tensors.density, tensors.features, several, depth=True)
    for n, each in enumerate(several):
        want = rm.render(volume, each, march=march, extras=True)
        for name in ("image", "opacity", "depth"):
            np.testing.assert_allclose(getattr(got, name)[n].numpy(), getattr(want, name), rtol=1e-6, atol=1e-7)


def test_gradients_go_where_they_are_wanted_and_nothing_else_is_done(plain, monkeypatch):
    render, volume, camera = plain
    cameras, passes, done = rm.TorchCameras.of(camera), medium.passes_of(EXACT.rule), []

    def recording(name):
        def run(*arguments):
            done.append(name)
            getattr(passes, name)(*arguments)

        return run

    spied = replace(passes, **{name: recording(name) for name in ("adjoint", "geometry_adjoint")})
    monkeypatch.setattr(medium, "passes_of", lambda mode: spied)
    x = leaves(volume, cameras)
    seen_of(render, cameras, x, False).image.square().sum().backward()
    want = {name: value.grad for name, value in x.items()}
    for wanted, ran in (
        (("density",), ["adjoint"]),
        (("features", "background"), ["adjoint"]),
        (("pose",), ["geometry_adjoint"]),
        (("focal", "density"), ["adjoint", "geometry_adjoint"]),
        (("background",), []),
        ((), []),
    ):
        x = {name: value.detach().requires_grad_(name in wanted) for name, value in x.items()}
        done.clear()
        image = seen_of(render, cameras, x, False).image
        assert image.requires_grad == bool(wanted)
        if wanted:
            image.square().sum().backward()
        assert done == ran
        for name, value in x.items():
            assert (value.grad is None) == (name not in wanted)
            assert value.grad is None or torch.equal(value.grad, want[name])


def test_several_calls_before_one_backward_are_what_each_is_alone(plain):
    """Of other volumes and cameras; and as ever after a backward that was interrupted."""
    render, volume, camera = plain
    x = [tensor(volume.density + shift) for shift in (0.0, 0.4)]
    features = tensor(volume.features)
    turned = replace(camera, principal=(2.2, 2.8))
    pairs = [(x[0], camera), (x[1], turned)]
    alone = []
    for density, at in pairs:
        loss = render(density, features, at, depth=True).image.square().sum()
        alone.append(torch.autograd.grad(loss, (density, features)))
    both = sum(render(density, features, at).image.square().sum() for density, at in pairs)
    got = torch.autograd.grad(both, (*x, features))
    assert torch.equal(got[0], alone[0][0])
    assert torch.equal(got[1], alone[1][0])
    assert torch.equal(got[2], alone[0][1] + alone[1][1])


def test_a_backward_that_was_interrupted_leaves_nothing(plain, monkeypatch):
    render, volume, camera = plain
    density, features = tensor(volume.density), tensor(volume.features)
    loss = lambda: render(density, features, camera).image.square().sum()  # noqa: E731
    (want,) = torch.autograd.grad(loss(), density)

    def interrupt(*_):
        raise KeyboardInterrupt

    once = loss()
    with monkeypatch.context() as patch:
        patch.setattr(march_session.volume_tensors, "density_gradient_out", interrupt)
        with pytest.raises(KeyboardInterrupt):
            once.backward()
    assert torch.equal(torch.autograd.grad(loss(), density)[0], want)


def test_where_nothing_is_met_depth_passes_nothing_on(plain):
    """Infinite; whatever a loss makes of it, NaN included."""
    render, volume, camera = plain
    density = tensor(volume.density)
    seen = render(density, tensor(volume.features), camera, depth=True)
    met = seen.depth.isfinite()
    assert 0 < met.sum() < met.numel()
    want = torch.autograd.grad((seen.depth[met] - 1).square().sum(), density, retain_graph=True)[0]
    got = torch.autograd.grad(torch.where(met, (seen.depth - 1).square(), 0.0).sum(), density)[0]
    assert torch.equal(got, want)
    assert got.isfinite().all()


def test_strided_tensors_are_taken(plain):
    render, volume, camera = plain
    density, features = (torch.tensor(np.array(each)) for each in (volume.density, volume.features))
    want = render(density, features, camera).image
    strided = torch.stack([density, density], -1)[..., 0].requires_grad_()
    turned = features.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)
    assert not strided.is_contiguous() and not turned.is_contiguous()
    image = render(strided, turned, camera).image
    assert torch.equal(image, want)
    image.permute(0, 3, 1, 2).backward(torch.ones(1, 3, 5, 6).double())
    assert strided.grad.abs().sum() > 0


def test_any_rays_are_traced(plain):
    """One origin for all directions, of any length; no rays are an empty image."""
    render, volume, camera = plain
    samples = [torch.tensor(np.array(each)) for each in (volume.density, volume.features)]
    rays = camera.rays()
    want = render(*samples, camera)
    got = render.trace(*samples, torch.tensor(rays.origin[0].copy()), 3 * torch.tensor(rays.direction.copy()))
    torch.testing.assert_close(got.image, want.image.view(-1, 3), rtol=0, atol=1e-14)
    assert got.depth is None
    none = render.trace(*samples, torch.zeros(0, 3).double(), torch.zeros(0, 3).double(), depth=True)
    assert none.image.shape == (0, 3)
    assert none.depth.shape == (0,)


def test_a_background_for_every_pixel(plain):
    render, volume, camera = plain
    samples = [torch.tensor(np.array(each)) for each in (volume.density, volume.features)]
    behind = tensor(np.random.default_rng(0).uniform(size=(1, 5, 6, 3)))
    seen = render(*samples, camera, background=behind)
    black = render(*samples, camera, background="black")
    torch.testing.assert_close(seen.image, black.image + (1 - black.opacity[..., None]) * behind)
    seen.image.sum().backward()
    torch.testing.assert_close(behind.grad, (1 - seen.opacity[..., None]).expand(1, 5, 6, 3))


def test_torch_func_takes_derivatives(plain):
    """`grad` is backward, `jvp` its transpose, `vmap` a call after the other; second derivatives are refused."""
    render, volume, camera = plain
    density, features = (torch.tensor(np.array(each)) for each in (volume.density, volume.features))
    loss = lambda x: render(x, features, camera).image.square().mean()  # noqa: E731
    leaf = density.clone().requires_grad_()
    (want,) = torch.autograd.grad(loss(leaf), leaf)
    assert torch.equal(torch.func.grad(loss)(density), want)
    dot = torch.tensor(np.random.default_rng(0).normal(size=density.shape))
    torch.testing.assert_close(torch.func.jvp(loss, (density,), (dot,))[1], (want * dot).sum())
    several = torch.stack([density, density + 0.3])
    torch.testing.assert_close(torch.func.vmap(loss)(several), torch.stack([loss(each) for each in several]))
    (again,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
    with pytest.raises(rm.RaymarchError, match="no second derivatives; leave create_graph out"):
        again.sum().backward()


def test_gradients_by_rays_in_ndc():
    """Depth moves by density alone there, and says so."""
    rng = np.random.default_rng(1)
    place = cases.motion(shift=(-1, -1, -0.9)) @ np.diag([2 / 7, 0.5, 0.5, 1])
    ndc = ndc_of_frustum(rm.Camera.look_at((0, -4, 0)).world_from_camera, 3.0)
    volume = rm.Volume(rng.normal(size=(8, 5, 4)), rng.normal(size=(8, 5, 4, 3)), place, ndc_from_world=ndc)
    origin, direction = tensor([(0.1, -4, 0.2), (0.4, -3.7, 0.1)]), tensor([(0.05, 1, 0.1), (-0.1, 1, -0.07)])
    density, features = (torch.tensor(np.array(each)) for each in (volume.density, volume.features))
    with rm.TorchRender(volume, EXACT, slots=2) as render:

        def numbers(origin, direction):
            seen = render.trace(density, features, origin, direction)
            return seen.image, seen.opacity

        assert numbers(origin, direction)[1].min() > 0.05
        assert torch.autograd.gradcheck(numbers, (origin, direction))
        with pytest.raises(rm.RaymarchError, match="depth in NDC has no gradient by rays; detach the cameras"):
            render.trace(density, features, origin, direction, depth=True).depth.sum().backward()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_volume_goes_there_and_back(sparse):
    """The same numbers, in memory of their own; also one in bricks."""
    volume = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
    tensors = rm.TorchVolume.of(volume.sparse() if sparse else volume, requires_grad=True)
    assert tensors.density.requires_grad and tensors.features.is_leaf
    back = tensors.volume()
    for name in ("density", "features", "background", "world_from_index"):
        np.testing.assert_array_equal(getattr(back, name), getattr(volume, name))
    assert back.activation == volume.activation
    with torch.no_grad():
        tensors.density.add_(1.0)
    np.testing.assert_array_equal(back.density, volume.density)
    assert tensors.volume().density.max() == 10.0


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.model)
def test_cameras_go_there_and_back_and_have_the_same_rays(lens):
    several = [replace(case(lens=lens.model, size=(6, 5))[1], lens=lens)] * 2
    cameras = rm.TorchCameras.of(several)
    origin, direction = cameras.rays()
    assert len(cameras) == 2
    np.testing.assert_allclose(direction[1].numpy().reshape(-1, 3), several[1].rays().direction, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(origin[1].numpy().reshape(-1, 3), several[1].rays().origin)
    for got, want in zip(cameras.cameras(), several, strict=True):
        assert (got.focal, got.principal, got.lens, got.width) == (want.focal, want.principal, want.lens, want.width)
        np.testing.assert_allclose(got.world_from_camera, want.world_from_camera, rtol=0, atol=1e-12)
    if lens.names:
        inputs = tuple(each.clone().requires_grad_() for each in (cameras.focal, cameras.coefficients))
        small = replace(cameras, width=2, height=2)
        assert torch.autograd.gradcheck(
            lambda f, k: replace(small, focal=f, coefficients=k).rays()[1], inputs, check_forward_ad=True
        )


@pytest.mark.parametrize("lens", ["pinhole", "opencv"])
def test_second_derivatives_of_rays_are_those_of_differences_or_refused(lens):
    """Through a lens that distorts there are none, by whichever of its inputs, forward or backward."""
    cameras, jac = replace(rm.TorchCameras.of(case(lens=lens)[1]), width=2, height=2), torch.func
    w = torch.tensor(np.random.default_rng(0).normal(size=(1, 2, 2, 3)))
    for name in ("focal", "coefficients")[: 1 if lens == "pinhole" else 2]:
        at = getattr(cameras, name)
        loss = lambda x: (replace(cameras, **{name: x}).rays()[1] * w).sum()  # noqa: B023, E731
        for inner, outer in ((jac.jacfwd, jac.jacfwd), (jac.jacrev, jac.jacrev), (jac.jacrev, jac.jacfwd)):
            if lens == "pinhole":
                steps = 1e-6 * torch.eye(2, dtype=torch.float64)[:, None]
                slopes = [(inner(loss)(at + h) - inner(loss)(at - h)) / 2e-6 for h in steps]
                torch.testing.assert_close(outer(inner(loss))(at), torch.stack(slopes, -1)[..., None, :])
            else:
                assert inner(loss)(at).any()
                with pytest.raises(rm.RaymarchError, match="a lens that distorts has no second derivatives; leave"):
                    outer(inner(loss))(at)
        leaf = at.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        if lens == "opencv":
            with pytest.raises(rm.RaymarchError, match="a lens that distorts has no second derivatives; leave"):
                slope.sum().backward()


def test_a_pose_moves_by_the_exponential_that_register_has():
    camera = case()[1]
    move = np.array([0.3, -0.1, 0.2, 0.4, -0.5, 0.6])
    got = rm.TorchCameras.of(camera).moved(torch.tensor(move)[None]).world_from_camera[0].numpy()
    from raymarch.geometry.pose import exp_rigid

    np.testing.assert_allclose(got, camera.world_from_camera @ exp_rigid(move), rtol=0, atol=1e-13)


SAYS = [
    (lambda r, x, f, c: r(x.numpy(), f, c), r"density is a ndarray, want a tensor; pass torch.as_tensor\(density\)"),
    (lambda r, x, f, c: r(x.float(), f, c), r"density is torch.float32 but this process runs f64; pass density.doub"),
    (lambda r, x, f, c: r(x, f.to("meta"), c), r"features is on meta but this process runs on cpu"),
    (lambda r, x, f, c: r(x[1:], f, c), r"density has shape \(7, 6, 5\), want \(8, 6, 5\)"),
    (lambda r, x, f, c: r(x, f[..., :2], c), r"features has shape \(8, 6, 5, 2\), want \(8, 6, 5, 12\)"),
    (lambda r, x, f, c: r(x, None, c), r"features are None but mode emission-absorption sees colours; pass them"),
    (lambda r, x, f, c: r(x * float("nan"), f, c), r"density has a number that is not finite; find it with"),
    (lambda r, x, f, c: r(x, f / 0, c), r"features has a number that is not finite"),
    (lambda r, x, f, c: r(x, f, 3), r"cameras is 3"),
    (lambda r, x, f, c: r(x, f, [c, c.scaled(2)]), r"cameras have images of 6 x 5 \(pinhole\) and of 12 x 10"),
    (lambda r, x, f, c: r(x, f, c, depth=1), r"depth is 1"),
    (lambda r, x, f, c: r(x, f, c, iso=x[0, 0, 0]), r"mode emission-absorption reads no iso; leave it out"),
    (lambda r, x, f, c: r(x, f, c, table=x[0, :4, :4]), r"mode emission-absorption reads no table; leave it out"),
    (lambda r, x, f, c: r(x, f, c, background="sky"), r"background is 'sky'"),
    (lambda r, x, f, c: r(x, f, c, background=x[0, 0]), r"background has shape \(5,\), want \(3,\) or what goes"),
    (lambda r, x, f, c: r(x, f, c, background=x[0, 0].float()), r"background is torch.float32"),
    (lambda r, x, f, c: r.trace(x, f, x[0], x[0]), r"origin has shape \(6, 5\), want \(.., 3\)"),
    (
        lambda r, x, f, c: r.trace(x, f, f[:2, 0, 0, :3], f[:3, 0, 0, :3]),
        r"origin has shape \(2, 3\) and direction \(3, 3\)",
    ),
    (lambda r, x, f, c: r.trace(x, f, f[0, 0, :, :3], 0 * f[0, 0, :, :3]), r"some rays are not finite"),
    (lambda r, x, f, c: rm.TorchVolume(x, f, x[0, 0, :3], c), r"like is a Camera"),
    (lambda r, x, f, c: replace(rm.TorchVolume.of(r.like), density=x[1:]), r"density has shape \(7, 6, 5\)"),
    (lambda r, x, f, c: replace(rm.TorchVolume.of(r.like), density=x / 0).volume(), r"density has a number that is"),
    (lambda r, x, f, c: rm.TorchVolume.of(c), r"volume is a Camera"),
    (lambda r, x, f, c: rm.TorchCameras.of([]), r"cameras is \[\]"),
    (lambda r, x, f, c: replace(rm.TorchCameras.of(c), focal=x[0]), r"focal has shape \(6, 5\), want \(1, 2\)"),
    (lambda r, x, f, c: replace(rm.TorchCameras.of(c), lens="tele"), r"lens is 'tele', want one of pinhole"),
    (
        lambda r, x, f, c: replace(rm.TorchCameras.of(c), lens="radial"),
        r"coefficients has shape \(1, 0\), want \(1, 2\)",
    ),
    (lambda r, x, f, c: rm.TorchCameras.of(c).moved(x[0, :1]), r"pose has shape \(1, 5\), want \(1, 6\)"),
    (lambda r, x, f, c: r(x, f, replace(rm.TorchCameras.of(c), focal=0 * x[0, :1, :2])), r"rays are not finite"),
    (lambda r, x, f, c: rm.TorchRender(c), r"volume is a Camera"),
    (lambda r, x, f, c: rm.TorchRender(r.like, "fast"), r"march is 'fast'"),
    (lambda r, x, f, c: rm.TorchRender(r.like, slots=2.5), r"slots is 2.5"),
]


@pytest.mark.parametrize("which", range(len(SAYS)))
def test_what_cannot_be_taken_is_named(plain, which):
    """In one line; the next call is as ever."""
    render, volume, camera = plain
    x, f = (torch.tensor(np.array(each)) for each in (volume.density, volume.features))
    want = render(x, f, camera).image
    call, said = SAYS[which]
    with pytest.raises(rm.RaymarchError, match=said) as raised:
        call(render, x, f, camera)
    assert "\n" not in str(raised.value)
    assert torch.equal(render(x, f, camera).image, want)


def test_a_renderer_without_slots_has_no_gradients():
    volume, camera = case(size=(6, 5))
    tensors = rm.TorchVolume.of(volume, requires_grad=True)
    with rm.TorchRender(volume, EXACT, slots=0) as render:
        with pytest.raises(rm.RaymarchError, match="made with slots=0 and has no gradients; make one with slots=4"):
            render(tensors.density, tensors.features, camera)
        with torch.no_grad():
            assert not render(tensors.density, tensors.features, camera).image.requires_grad


def test_use_after_close_is_refused():
    volume, camera = case(size=(6, 5))
    tensors = rm.TorchVolume.of(volume, requires_grad=True)
    with rm.TorchRender(volume, EXACT, slots=2) as render:
        image = render(tensors.density, tensors.features, camera).image
    for use in (lambda: render(tensors.density, tensors.features, camera), lambda: image.sum().backward()):
        with pytest.raises(rm.RaymarchError, match="this torch render is closed; make a new one"):
            use()


def test_another_thread_is_refused(plain):
    render, volume, camera = plain
    tensors = rm.TorchVolume.of(volume, requires_grad=True)
    said, image = [], render(tensors.density, tensors.features, camera).image

    def run(use):
        try:
            use()
        except rm.RaymarchError as error:
            said.append(str(error))

    for use in (lambda: render(tensors.density, tensors.features, camera), lambda: image.sum().backward()):
        thread = threading.Thread(target=run, args=(use,))
        thread.start()
        thread.join()
    assert "another thread" in said[0]
    assert "set_multithreading_enabled(False)" in said[1]


def test_a_tensor_changed_before_backward_is_refused(plain):
    """By torch: the ray is replayed through it."""
    render, volume, camera = plain
    tensors = rm.TorchVolume.of(volume, requires_grad=True)
    image = render(tensors.density, tensors.features, camera).image
    with torch.no_grad():
        tensors.density.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        image.sum().backward()


@pytest.mark.parametrize("name", ["TorchRender", "TorchVolume", "TorchCameras"])
def test_the_examples_are_true(name, single):
    failed, _, report = single(twin.run_example, name)
    assert failed == 0, report
