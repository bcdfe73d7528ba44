"""Law: TorchMarch is the march of tests/torch_twin.py, image and gradient; what it cannot take it names."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from skips import require_extra

torch = require_extra("torch", "torch")

import torch_twin as twin  # noqa: E402

from raymarch import runtime  # noqa: E402
from raymarch.errors import RaymarchError  # noqa: E402
from raymarch.torch import neural_volumes  # noqa: E402
from raymarch.torch.neural_volumes import TorchMarch  # noqa: E402
from raymarch.torch.tensors import require_tensor  # noqa: E402

pytestmark = pytest.mark.extra
SHAPE, DT = (5, 4, 6), 0.11


@pytest.fixture(scope="module")
def ours():
    with TorchMarch(SHAPE, slots=2) as march:
        yield march


@pytest.fixture
def tensors():
    """Two templates, a camera outside and one within."""
    return dict(zip(twin.NAMES, twin.case(SHAPE, 2, (3, 4)), strict=True))


@pytest.mark.parametrize("shape", twin.SHAPES, ids=str)
def test_image_and_gradients_are_the_twins_in_double(shape):
    with TorchMarch(shape, slots=2) as march:
        for dt, how in ((DT, {}), (0.5, {"density": 0.7}), (0.031, {"seed": 1, "n": 2, "size": (1, 7)}), (9.0, {})):
            tensors = twin.case(shape, **how)
            got = twin.image_and_gradients(march, tensors, dt)
            want = twin.image_and_gradients(twin.march, tensors, dt)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())


@pytest.mark.parametrize("shape", twin.SHAPES[::2], ids=str)
def test_image_and_gradients_are_the_twins_in_single(shape, single):
    """Both sides in f32, relative L2 norm; in rays that graze the box the twin's own rounding comes near the bound."""
    got, want = single(twin.both_in_single, shape, DT, {"seed": 3})
    for a, b in zip(got, want, strict=True):
        assert a.dtype == np.float32
        assert np.linalg.norm(a - b) < 1e-5 * np.linalg.norm(b)


def test_the_case_has_clamps_misses_and_negative_densities():
    """Else the laws above said little."""
    tensors = twin.case()
    alpha = twin.march(*tensors, dt=DT).detach()[:, 3]
    assert (tensors[0][:, 3] < 0).double().mean() > 0.2
    assert (alpha > 1 - 1e-9).double().mean() > 0.2
    assert (alpha == 0).double().mean() > 0.05
    assert ((alpha != 0) & (alpha < 0.9)).double().mean() > 0.1


def test_gradcheck(ours):
    """Torch's own differences; `march(..., dt=...)` by all six tensors, bitwise repeatable."""
    tensors = twin.case(SHAPE, 2, (2, 2), seed=2)
    assert torch.autograd.gradcheck(lambda *x: ours(*x, dt=0.4), tensors)


def test_one_ray_through_the_middle_of_a_constant_template(ours):
    """Two units of density 0.3: alpha 0.6, colours times that; from within, one unit: half of it."""
    rgba = torch.tensor([0.1, 0.5, 2.0, 0.3], dtype=torch.float64).view(1, 4, 1, 1, 1)
    template = rgba.expand(2, 4, *SHAPE).contiguous()
    campos = torch.tensor([[0, 0, -3.0], [0, 0, 0]]).double()
    cameras = torch.eye(3).double().repeat(2, 1, 1), torch.ones(2, 2).double(), torch.zeros(2, 2).double()
    pixel = torch.zeros(2, 1, 1, 2).double()
    image = ours(template, campos, *cameras, pixel, dt=0.07).view(2, 4)
    want = torch.tensor([[0.06, 0.3, 1.2, 0.6], [0.03, 0.15, 0.6, 0.3]], dtype=torch.float64)
    torch.testing.assert_close(image, want, rtol=0, atol=1e-12)


def test_batches_change_nothing(ours, tensors):
    values = list(tensors.values())
    want = twin.image_and_gradients(ours, values, DT)
    with TorchMarch(SHAPE, slots=2, batch=5) as march:
        got = twin.image_and_gradients(march, values, DT)
    np.testing.assert_array_equal(got[0], want[0])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * np.abs(b).max())


@pytest.mark.parametrize("wanted", [("template",), ("campos",), ("camrot", "princpt"), ("template", "pixelcoords"), ()])
def test_gradients_go_where_they_are_wanted(ours, tensors, wanted):
    want = dict(zip(twin.NAMES, twin.image_and_gradients(ours, list(tensors.values()), DT)[1:], strict=True))
    for name, value in tensors.items():
        value.grad = None
        value.requires_grad_(name in wanted)
    image = ours(*tensors.values(), dt=DT)
    assert image.requires_grad == bool(wanted)
    assert all(value.grad is None for value in tensors.values())  # Taichi alone would give leaves one of zeros
    if wanted:
        weight = torch.tensor(np.random.default_rng(1).normal(size=image.shape))
        (image * weight).sum().backward()
    for name, value in tensors.items():
        assert (value.grad is not None) == (name in wanted)
        if name in wanted:
            np.testing.assert_array_equal(value.grad.numpy(), want[name])


def test_a_strided_gradient_of_the_image_is_taken(ours, tensors):
    """`sum` hands back one number for all pixels, `permute` another order."""
    ours(*tensors.values(), dt=DT).sum().backward()
    got = tensors["template"].grad.clone()
    tensors["template"].grad = None
    image = ours(*tensors.values(), dt=DT)
    image.backward(torch.ones(2, 3, 4, 4).double().permute(0, 3, 1, 2))
    assert torch.equal(got, tensors["template"].grad)


def test_inputs_other_than_the_template_may_be_strided(ours, tensors):
    want = ours(*tensors.values(), dt=DT)
    for name in ("campos", "camrot", "pixelcoords"):
        value = tensors[name].detach()
        tensors[name] = torch.stack([value, 0 * value], -1)[..., 0]
        assert not tensors[name].is_contiguous()
    assert torch.equal(ours(*tensors.values(), dt=DT), want)


def test_no_second_gradient(ours, tensors):
    image = ours(*tensors.values(), dt=DT)
    (d_template,) = torch.autograd.grad(image.square().sum(), tensors["template"], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        d_template.sum().backward()


def test_no_pixels_and_no_templates(ours, tensors):
    tensors["pixelcoords"] = tensors["pixelcoords"].detach()[:, :0]
    image = ours(*tensors.values(), dt=DT)
    assert image.shape == (2, 4, 0, 4)
    image.sum().backward()
    assert not tensors["template"].grad.any()
    assert ours(*(value[:0] for value in tensors.values()), dt=DT).shape == (0, 4, 0, 4)


def test_a_backward_that_was_interrupted_leaves_nothing(ours, tensors, monkeypatch):
    values = list(tensors.values())
    want = twin.image_and_gradients(ours, values, DT)

    def interrupt(*_):
        raise KeyboardInterrupt

    for name in ("reduce_slots", "template_gradient_out"):
        image = ours(*values, dt=DT)
        with monkeypatch.context() as patch:
            if name == "reduce_slots":
                calls = iter([ours.grid.reduce_slots, interrupt])
                patch.setattr(ours.grid, "reduce_slots", lambda calls=calls: next(calls)())
            else:
                patch.setattr(neural_volumes.torch_templates, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                image.sum().backward()
        got = twin.image_and_gradients(ours, values, DT)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_gradient_that_is_not_finite_is_handed_on(ours, tensors):
    """As torch does; the next call is as ever."""
    values = list(tensors.values())
    want = twin.image_and_gradients(ours, values, DT)
    image = ours(*values, dt=DT)
    image.backward(torch.full_like(image, float("nan")))
    assert tensors["template"].grad.isnan().any()
    assert tensors["campos"].grad.isnan().any()
    for a, b in zip(twin.image_and_gradients(ours, values, DT), want, strict=True):
        np.testing.assert_array_equal(a, b)


SAYS = [
    ("template", lambda x: x.numpy(), r"a ndarray, want a tensor; pass torch.as_tensor\(template\)"),
    ("template", lambda x: x.float(), r'runs f64; pass template.double\(\), or call rm.start\(precision="f32"\) first'),
    ("campos", lambda x: x.float(), r"campos is torch.float32 but this process runs f64; pass campos.double\(\)"),
    ("template", lambda x: x.half(), r"torch.float16 but this process runs f64; pass template.double\(\)$"),
    ("pixelcoords", lambda x: x.long(), r"torch.int64 but .* pass pixelcoords.double\(\)$"),
    ("template", lambda x: x.to_sparse(), r"no plain strided tensor; pass template.to_dense\(\)"),
    ("template", lambda x: torch._neg_view(x), r"pass template.to_dense\(\).resolve_neg\(\)"),
    ("template", lambda x: x.to("meta"), r"on meta but this process runs on cpu; pass template.cpu\(\)$"),
    ("focal", lambda x: x.to("meta"), r"focal is on meta"),
    ("template", lambda x: x.transpose(3, 4).contiguous().transpose(3, 4), r"pass template.contiguous\(\)"),
    ("template", lambda x: x[:1].expand(2, -1, -1, -1, -1), r"not contiguous"),
    ("template", lambda x: x.permute(0, 2, 3, 4, 1), r"template.permute\(0, 4, 1, 2, 3\).contiguous\(\)"),
    ("template", lambda x: x[:, :3].contiguous(), r"\(2, 3, 5, 4, 6\), want \(N, 4, D, H, W\)"),
    ("template", lambda x: x[0], r"\(4, 5, 4, 6\), want \(N, 4, D, H, W\); a single one is template\[None\]"),
    ("template", lambda x: x[:, :, 1:].contiguous(), r"was made for \(5, 4, 6\); make TorchMarch\(\(4, 4, 6\)\)"),
    ("campos", lambda x: x[:1], r"campos has shape \(1, 3\), want \(2, 3\)"),
    ("camrot", lambda x: x[0], r"camrot has shape \(3, 3\), want \(2, 3, 3\)"),
    ("focal", lambda x: x[:, :1], r"focal has shape \(2, 1\)"),
    ("princpt", lambda x: x[:, 0], r"princpt has shape \(2,\)"),
    ("pixelcoords", lambda x: x.permute(0, 3, 1, 2), r"pixelcoords has shape \(2, 2, 3, 4\), want \(2, H, W, 2\)"),
    ("pixelcoords", lambda x: x[0], r"pixelcoords has shape \(3, 4, 2\)"),
    ("template", lambda x: x.index_fill(4, torch.tensor([3]), float("nan")), r"find it with template.isfinite\(\)"),
    ("template", lambda x: x.index_fill(1, torch.tensor([3]), float("inf")), r"a number that is not finite"),
    ("campos", lambda x: x.index_fill(0, torch.tensor([1]), float("nan")), r"some rays are not finite"),
    ("focal", lambda x: 0 * x, r"some rays are not finite"),
    ("camrot", lambda x: 0 * x, r"some rays are not finite"),
    ("dt", lambda x: 0.0, r"dt is 0.0, want a number from 0.0004 such as 0.2"),
    ("dt", lambda x: -1, r"dt is -1"),
    ("dt", lambda x: float("nan"), r"dt is nan"),
    (
        "dt",
        lambda x: torch.tensor(0.1, requires_grad=True),
        r"dt is tensor\(0.1000, requires_grad=True\), want a number",
    ),
    ("dt", lambda x: None, r"dt is None"),
]


@pytest.mark.parametrize(("name", "change", "said"), SAYS, ids=[f"{name}-{k}" for k, (name, _, _) in enumerate(SAYS)])
def test_what_cannot_be_taken_is_named(ours, tensors, name, change, said):
    """In one line, before or during the call; the next call is as ever."""
    want = ours(*tensors.values(), dt=DT)
    wrong = {**tensors, "dt": DT}
    wrong[name] = change(tensors[name].detach() if name in tensors else DT)
    with pytest.raises(RaymarchError, match=said) as raised:
        ours(**wrong)
    assert "\n" not in str(raised.value)
    assert torch.equal(ours(*tensors.values(), dt=DT), want)


def test_a_tensor_on_the_cpu_is_refused_where_cuda_runs(monkeypatch):
    monkeypatch.setattr(runtime, "_running", replace(runtime._running, arch="cuda"))
    with pytest.raises(RaymarchError, match=r'runs on cuda; pass x.to\("cuda:0"\), or call rm.start\(.cpu.\) first'):
        require_tensor("x", torch.zeros(1).double())


def test_double_is_refused_where_single_runs(monkeypatch):
    monkeypatch.setattr(runtime, "_running", replace(runtime._running, precision="f32"))
    with pytest.raises(RaymarchError, match=r'pass x.float\(\), or call rm.start\(precision="f64"\) first'):
        require_tensor("x", torch.zeros(1).double())


@pytest.mark.parametrize(
    ("how", "said"), [({"slots": 0}, "slots is 0"), ({"batch": 0}, "batch is 0"), ({"batch": 0.5}, "batch")]
)
def test_bad_settings_are_refused(how, said):
    with pytest.raises(RaymarchError, match=said):
        TorchMarch(SHAPE, **how)


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 1)])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(RaymarchError, match="want three whole numbers from 2"):
        TorchMarch(shape)


def test_more_than_taichi_can_index_is_refused(ours, tensors, monkeypatch):
    monkeypatch.setattr(neural_volumes, "MAX_CELLS", 479)
    with pytest.raises(RaymarchError, match=r"templates of \(5, 4, 6\) have over 479 numbers"):
        TorchMarch(SHAPE)
    monkeypatch.setattr(neural_volumes, "MAX_CELLS", 47)
    with pytest.raises(RaymarchError, match=r"images of \(3, 4\) have over 47 numbers"):
        ours(*tensors.values(), dt=DT)


def test_no_gradient_is_kept_where_none_is_wanted(ours, tensors):
    want = ours(*tensors.values(), dt=DT)
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            image = ours(*tensors.values(), dt=DT)
        assert not image.requires_grad
        assert torch.equal(image, want)


def test_use_after_close_is_refused(tensors):
    with TorchMarch(SHAPE, slots=1) as march:
        image = march(*tensors.values(), dt=DT)
    for use in (lambda: march(*tensors.values(), dt=DT), lambda: image.sum().backward()):
        with pytest.raises(RaymarchError, match="this torch march is closed; make a new one"):
            use()


def test_another_thread_is_refused(ours, tensors):
    image = ours(*tensors.values(), dt=DT)
    said = []

    def run(use):
        try:
            use()
        except RaymarchError as error:
            said.append(str(error))

    for use in (lambda: ours(*tensors.values(), dt=DT), lambda: image.sum().backward()):
        thread = threading.Thread(target=run, args=(use,))
        thread.start()
        thread.join()
    assert "another thread" in said[0]
    assert "set_multithreading_enabled(False)" in said[1]


def test_a_template_changed_before_backward_is_refused(ours, tensors):
    """By torch: the ray is replayed through it."""
    image = ours(*tensors.values(), dt=DT)
    with torch.no_grad():
        tensors["template"] += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        image.sum().backward()


def test_the_example_is_true(single):
    failed, tried, report = single(twin.run_example)
    assert (failed, tried) == (0, 7), report
