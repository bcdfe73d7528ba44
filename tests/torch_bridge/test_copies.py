"""Law of copies of modules: device memory is refused in a line, tensors are copied; a TorchVolume is a volume."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

pytestmark = pytest.mark.extra
torch = require_extra("torch", "torch")


def fog():
    return rm.Volume.from_function(lambda p: 2.0 + p[..., 0], shape=(4, 4, 4))


COPIES = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "torch.save": lambda x: torch.save(x, io.BytesIO()),
    "AveragedModel": lambda x: (
        torch.optim.swa_utils.AveragedModel(x) if isinstance(x, torch.nn.Module) else pickle.dumps(x)
    ),
}
HOLDERS = {
    "TorchRender": lambda: rm.TorchRender(fog(), slots=1),
    "TorchMarch": lambda: rm.TorchMarch((4, 4, 4), slots=1),
    "Renderer": lambda: rm.Renderer(fog()),
}


class Net(torch.nn.Module):
    def __init__(self, holder):
        super().__init__()
        self.holder, self.weight = holder, torch.nn.Parameter(torch.ones(3))


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_holder_of_device_memory_is_not_copied_alone_or_in_a_module(kind):
    with HOLDERS[kind]() as holder:
        for name, copied in COPIES.items():
            for given in (holder, Net(holder)):
                if given is not holder and name == "copy.copy":
                    continue  # which copies no attribute of a module
                with pytest.raises(rm.RaymarchError) as told:
                    copied(given)
                assert str(told.value).startswith(f"a {kind} holds device memory"), name
                assert "outside of the module" in str(told.value) and "\n" not in str(told.value)


def test_outside_of_the_module_it_works_and_the_module_is_copied():
    """What the refusal says to do."""
    kind = rm.TorchVolume.of(fog()).density.dtype

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.density = torch.nn.Parameter(torch.full((4, 4, 4), 2.0, dtype=kind))
            self.features = torch.nn.Parameter(torch.zeros((4, 4, 4, 3), dtype=kind))

        def forward(self, render, camera):
            return render(self.density, self.features, camera).image

    camera = rm.Camera.look_at((0, -4, 0), width=6, height=5)
    with rm.TorchRender(fog(), slots=1) as render:
        first = Field()
        averaged = torch.optim.swa_utils.AveragedModel(first)
        again = copy.deepcopy(first)
        torch.save(first.state_dict(), io.BytesIO())
        seen = first(render, camera)
        torch.testing.assert_close(averaged(render, camera), seen)
        torch.testing.assert_close(again(render, camera), seen)
        tensors = rm.TorchVolume.of(fog())
        both = render(tensors, camera), render(tensors.density, tensors.features, camera, background=tensors.background)
        torch.testing.assert_close(both[0].image, both[1].image)
        origin, direction = torch.tensor([[[0.0, -4, 0]], [[0.0, 1, 0]]], dtype=kind)
        lines = render.trace(tensors, origin, direction), render.trace(*both_of(tensors), origin, direction)
        torch.testing.assert_close(lines[0].opacity, lines[1].opacity)
        with pytest.raises(rm.RaymarchError, match="cameras are missing; call render"):
            render(tensors.density, tensors.features)
        with pytest.raises(rm.RaymarchError, match="has its own; leave them out"):
            render(tensors, torch.zeros((4, 4, 4, 3)), camera)


def both_of(tensors):
    return tensors.density, tensors.features


def test_tensors_of_a_volume_are_copied_with_their_numbers(tmp_path):
    tensors = rm.TorchVolume.of(fog(), requires_grad=True)
    stream = io.BytesIO()
    torch.save(tensors, stream)
    stream.seek(0)
    for again in (copy.deepcopy(tensors), pickle.loads(pickle.dumps(tensors)), torch.load(stream, weights_only=False)):
        torch.testing.assert_close(again.density, tensors.density)
        assert again.density.data_ptr() != tensors.density.data_ptr() and again.density.requires_grad
        np.testing.assert_array_equal(again.volume().density, tensors.volume().density)


def test_whatever_takes_a_volume_takes_its_tensors(tmp_path):
    tensors = rm.TorchVolume.of(fog(), requires_grad=True)
    rm.save(tensors, tmp_path / "fog.h5")
    np.testing.assert_array_equal(rm.load(tmp_path / "fog.h5").density, tensors.volume().density)
    assert rm.plot.slices(tensors)[0].get_title() == rm.plot.slices(fog())[0].get_title()
    assert rm.plot.histogram(tensors).get_xlabel() == "sigma [1/world unit]"
    camera = rm.Camera.look_at((0, -4, 0), width=6, height=5)
    np.testing.assert_array_equal(rm.render(tensors, camera), rm.render(tensors.volume(), camera))
