"""Laws: every device computes the same; one that is absent, broken or without f64 is a line with its cure."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time

import numpy as np
import owned_trees
import pytest
import reference

from raymarch import runtime
from raymarch.device import memory
from raymarch.diagnosis import device_test, devices
from raymarch.errors import RaymarchError
from raymarch.geometry.rays import Rays
from raymarch.runtime import vulkan
from raymarch.runtime.vulkan import VulkanDevice
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

GPU = VulkanDevice(0, "a card", "discrete", "1.0", 8 << 30, 3 << 30, 1 << 30, True)


def kind(name, number=0, doubles=True):
    return VulkanDevice(number, name, name, "", 8 << 30, 8 << 30, 1 << 30, doubles)


def test_numbers_of_8_bytes_have_trees_of_their_own(single):
    """Beside f32 they are wrong on Vulkan, and nothing says so."""
    rows, names = single(owned_trees.widths_of_owners)
    assert {name for name, _ in rows} == names, "an owner that owned_trees.makers lacks"
    assert all(len(widths) == 1 for _, trees in rows for widths in trees), rows
    assert [8] in [widths for _, trees in rows for widths in trees]


# The self-test.


def case():
    rng = np.random.default_rng(3)
    density = rng.uniform(0, 0.4, (device_test.SIDE,) * 3)
    across = rng.uniform(0.5, device_test.SIDE - 1.5, (device_test.RAYS, 2))
    return density, across, rng.normal(size=(device_test.RAYS, 4))


def test_its_image_is_that_of_the_reference():
    density, across, d_image = case()
    image, *_ = device_test.numbers_of_numpy(density, across, d_image)
    features = np.broadcast_to(device_test.COLOUR / device_test.HARMONIC, (*density.shape, 3))
    volume = Volume(density, features, np.eye(4), Activation("identity", 0.0, 1.0, "sigmoid"))
    origin = np.stack([across[:4, 0], np.full(4, -1.0), across[:4, 1]], 1)
    rays = Rays(origin, np.tile([0.0, 1.0, 0.0], (4, 1)))
    wanted = reference.march(volume, rays, device_test.STEP, device_test.BACKGROUND)
    np.testing.assert_allclose(image[:4], wanted, atol=1e-12)


def test_its_gradient_is_the_slope_of_its_image():
    density, across, d_image = case()
    _, d_density, _ = device_test.numbers_of_numpy(density, across, d_image)
    towards = np.random.default_rng(4).normal(size=density.shape)
    ends = [device_test.numbers_of_numpy(density + h * towards, across, d_image)[0] for h in (1e-5, -1e-5)]
    slope = ((ends[0] - ends[1]) / 2e-5 * d_image).sum()
    assert slope == pytest.approx((d_density * towards).sum(), rel=1e-7)


def test_a_device_that_is_right_passes_and_one_that_is_not_fails(monkeypatch):
    arch = runtime.started().arch
    assert device_test.run_test(arch)["worst"] < 1e-9
    right = device_test.numbers_of_numpy
    named = (("image", 0), ("gradient by density", 1), ("gradient by colour", 2))
    for (name, at), factor in itertools.product(named, (1.0002, np.nan)):
        wrong = [lambda x: x] * 3
        wrong[at] = lambda x, factor=factor: factor * x
        monkeypatch.setattr(
            device_test,
            "numbers_of_numpy",
            lambda *case, wrong=wrong: [do(x) for do, x in zip(wrong, right(*case), strict=True)],
        )
        with pytest.raises(RaymarchError, match=f"it computes the {name} wrongly"):
            device_test.run_test(arch)


# Processes of their own.

ENDS = {
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended the process that tried it"),
    "hangs": ("import time; time.sleep(60)", "was not done in 1 s"),
    "exits": ("raise SystemExit(3)", "exit code 3"),
}


@pytest.mark.parametrize(("code", "told"), ENDS.values(), ids=ENDS)
def test_a_driver_that_breaks_is_a_line_and_leaves_no_process(code, told, monkeypatch):
    started = []
    popen = subprocess.Popen

    def note(*words, **how):
        started.append(popen(*words, **how))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    monkeypatch.setattr(devices, "child_command", lambda *words: [sys.executable, "-c", code])
    began = time.monotonic()
    answer = devices.ask_child("test", "cuda", 1.0)
    assert time.monotonic() - began < 30
    assert not answer.records and told in answer.fault
    assert devices.with_cure(answer.fault, "cuda").endswith("; use --arch cpu, or mend the driver")
    assert started[0].returncode is not None


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_self_test_ends_with_who_asked():
    code = "import time\nfrom raymarch.diagnosis import device_test as d\n"
    code += "d.run_test = lambda arch: time.sleep(60)\nd._main('test', 'cpu')"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        child.stdin.close()
        assert child.wait(30) == 1


def answers(**of_arch):
    """`ask_child` of a machine with these devices, all of which are right but those in `broken`."""
    broken = of_arch.pop("broken", {})

    def ask(task, arch, max_seconds, number=None):
        if task == "list":
            return devices.Answer(of_arch.get(arch, []))
        if arch in broken:
            return broken[arch]
        return devices.Answer([{"worst": 1e-6, "seconds": 0.25}])

    return ask


CPU = {"name": "a processor", "bytes": 8, "about": "2 threads", "number": 0, "taken": True}
CUDA = {"name": "a GPU", "bytes": 80, "about": "CUDA 12.4", "number": 0, "taken": True}
TWO = [{**CUDA, "about": ""}, {**CUDA, "name": "another", "number": 1, "taken": False, "about": ""}]


def reports(monkeypatch, **of_arch):
    monkeypatch.setattr(devices, "ARCHES", ("cpu", "cuda", "vulkan"))
    monkeypatch.setattr(devices, "ask_child", answers(**of_arch))
    return devices.examine_devices()


def test_the_one_that_auto_takes_is_cuda_where_there_is_one(monkeypatch):
    found = reports(monkeypatch, cpu=[CPU], vulkan=TWO)
    assert [(one.arch, one.works, one.chosen) for one in found] == [
        ("cpu", True, True),
        ("cuda", False, False),
        ("vulkan", True, False),
        ("vulkan", True, False),
    ]
    assert [one.why for one in found] == [
        "right to 1e-06 in 0.2 s (2 threads); --arch auto takes it, as there is no CUDA device",
        "no CUDA device was found; use --arch cpu, or mend the driver",
        "right to 1e-06 in 0.2 s; --arch vulkan takes it",
        "right to 1e-06 in 0.2 s; --arch vulkan takes it where TI_VISIBLE_DEVICE is 1",
    ]
    found = reports(monkeypatch, cpu=[CPU], cuda=[CUDA])
    assert [one.chosen for one in found] == [False, True, False]
    assert found[0].why.endswith("--arch cpu takes it")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (devices.Answer([{"error": "no; yes"}]), "no; yes"),
        (devices.Answer([{"error": "no"}]), "no; use --arch cpu, or mend the driver"),
        (devices.Answer([], "gone"), "gone; use --arch cpu, or mend the driver"),
        (devices.Answer([]), "its self-test said nothing; use --arch cpu, or mend the driver"),
    ],
)
def test_what_fails_has_its_cure(broken, why, monkeypatch):
    _, cuda, _ = reports(monkeypatch, cpu=[CPU], cuda=[CUDA], broken={"cuda": broken})
    assert (cuda.name, cuda.works, cuda.chosen, cuda.why) == ("a GPU", False, True, why)


# Vulkan.


@pytest.mark.parametrize("number", [None, "1", "7"])
def test_the_fastest_kind_with_64_bits_is_taken_unless_another_is_named(number, monkeypatch):
    there = [kind("software", 0), kind("discrete", 1, False), kind("integrated", 2), kind("discrete", 3)]
    monkeypatch.delenv(vulkan.DEVICE_VARIABLE, raising=False)
    if number is not None:
        monkeypatch.setenv(vulkan.DEVICE_VARIABLE, number)
    chosen = vulkan.chosen_device(there)
    assert (chosen and chosen.number) == {None: 3, "1": 1, "7": None}[number]


@pytest.mark.parametrize(
    ("there", "number", "told"),
    [
        ([], "", "no Vulkan device was found; use --arch cpu, or install the device's driver for Vulkan"),
        ([GPU], "7", "TI_VISIBLE_DEVICE is 7, want 0; unset it, and the fastest is taken"),
        (
            [kind("discrete", 0, False)],
            "",
            "discrete has no numbers of 64 bits, .*; use --arch cpu",
        ),
    ],
)
def test_a_vulkan_device_that_will_not_do_is_a_line(there, number, told, monkeypatch):
    monkeypatch.setenv(vulkan.DEVICE_VARIABLE, number)
    monkeypatch.setattr(runtime, "vulkan_devices", lambda: there)
    with pytest.raises(RaymarchError, match=told):
        runtime._choose_vulkan()


@pytest.fixture
def on_vulkan(monkeypatch):
    """This process as if it ran on a card."""
    monkeypatch.setattr(runtime, "_running", runtime.Runtime("vulkan", "f32", 2))
    monkeypatch.setattr(runtime, "_vulkan", GPU)
    monkeypatch.setattr(runtime, "vulkan_devices", lambda: [GPU])


def test_its_memory_is_that_of_the_card_and_a_grid_lies_in_one_piece(on_vulkan, monkeypatch):
    assert runtime.device_bytes() == (3 << 30, 8 << 30)
    with pytest.raises(RaymarchError, match="but Vulkan takes 1,073,741,824 in one piece; take less"):
        memory.require_memory((4, 4, 4), 2 << 30, 1, "take less")
    with pytest.raises(RaymarchError, match="these take 2,147,483,648 bytes but Vulkan .* in one piece; take less"):
        memory.require_images("these", 1, "take less", stored=2 << 30)
    monkeypatch.setattr(runtime, "_vulkan", kind("software"))
    assert runtime.device_bytes() is None  # the machine's counts


NO_DRIVER = {"VK_ICD_FILENAMES": "none", "VK_DRIVER_FILES": "none"}  # of the loader's variables, old and new
STARTS = {
    "f64": ("vulkan", "f64", "but vulkan computes in f32 only; use --arch cpu, or --precision f32"),
    "absent": ("vulkan", None, "no Vulkan device was found; use --arch cpu, or install the device's driver for Vulkan"),
}


@pytest.mark.parametrize(("arch", "precision", "told"), STARTS.values(), ids=STARTS)
def test_vulkan_is_refused_in_one_line_and_the_cpu_is_there_after_it(arch, precision, told):
    code = f"""
import raymarch as rm
try:
    rm.start({arch!r}, {precision!r})
except rm.RaymarchError as error:
    print(error)
print(rm.start("cpu").arch)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **NO_DRIVER}, capture_output=True, text=True, check=False
    )
    *_, message, after = done.stdout.splitlines()
    assert (done.returncode, after) == (0, "cpu"), done.stderr
    assert told in message


@pytest.fixture(scope="module")
def vulkan_here():
    """Devices of Vulkan, asked in a process of their own; skipped where there are none."""
    found = devices.ask_child("list", "vulkan", 60.0)
    if not found.records:
        pytest.skip("no Vulkan device")
    return found.records


def test_vulkan_computes_numpys_image_and_gradients(vulkan_here):
    (told,) = devices.ask_child("test", "vulkan", 300.0).records
    assert told.get("worst", 1) < device_test.TOLERANCE, told


@pytest.mark.whole
def test_the_devices_are_printed_with_the_names_that_are_promised(vulkan_here):
    done = subprocess.run([sys.executable, "-m", "raymarch", "devices", "--json"], capture_output=True, check=False)
    record = json.loads(done.stdout)
    assert set(record) == {"devices", "cache"}
    for one in record["devices"]:
        assert list(one) == ["arch", "name", "bytes", "works", "chosen", "why"]
    works = {one["arch"]: one["works"] for one in record["devices"]}
    assert works["cpu"] and works["vulkan"]
    assert (done.returncode, sum(one["chosen"] for one in record["devices"])) == (0, 1)
