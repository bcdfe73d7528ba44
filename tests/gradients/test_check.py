"""Law: gradients are checked on a user's own volume in a process of its own, and a wrong one is found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import single as worker
from sets import write_set

from raymarch import cli, runtime
from raymarch.device import pool
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients import check as checks
from raymarch.gradients import check_process
from raymarch.gradients.check import GradientRow, check_rows
from raymarch.gradients.check_process import CheckTask, GradientReport, check_gradients
from raymarch.gradients.check_sample import crop_met
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import GROUPS
from raymarch.io.volumes.volume_file import save
from raymarch.kernels.field.activation import DENSITY_FUNCTIONS
from raymarch.kernels.integrator import colour
from raymarch.rendering.march_settings import EXACT, March
from raymarch.volumes.activation import Activation
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

BALL = Volume.from_function(
    lambda p: 4 * np.exp(-6 * (p**2).sum(-1)), lambda p: 0.5 + 0.4 * np.sin(4 * p), shape=(10, 9, 8)
)
CAMERA = Camera.look_at((0.4, -4, 1), width=16, height=12)


def test_a_gradient_is_good_from_a_process_of_another_precision(single):
    report = single(check_gradients, BALL, CAMERA, ["exposure"])
    assert [(row.parameter, row.precision, row.verdict) for row in report.rows] == [("exposure", "f64", "good")]
    assert report.good and "the gradients are right" in str(report)


@pytest.mark.whole
def test_every_gradient_of_volumes_together_is_good():
    """Of each by its own groups: one is a fit, another a scan through a table, at another place."""
    table = TransferFunction([0.2, 1.5, 3], np.eye(3) * 0.5 + 0.3, [0.1, 0.3, 0.6], 0.5)
    scan = ScalarVolume(BALL.density[:, :, ::-1], np.diag([0.2, 0.15, 0.25, 1]))
    marches = [EXACT, replace(EXACT, mode="transfer", transfer=table)]
    report = check_gradients([BALL, scan], [CAMERA], march=marches, rays=64)
    assert {row.parameter: row.mode for row in report.rows} == {
        "volumes[0].density": "emission-absorption",
        "volumes[0].colour": "emission-absorption",
        "background": "emission-absorption",
        "exposure": "emission-absorption",
        "volumes[1].density": "transfer",
        "volumes[1].table": "transfer",
    }
    for row in report.rows:
        assert row.verdict == "good" and row.dot < 1e-12 and row.difference < 1e-7, row
    assert "mode emission-absorption and transfer, f64" in str(report)


def test_a_fit_of_several_rays_a_pixel_is_checked_together_with_others_along_single_ones(monkeypatch):
    """In the process that checks, whose work is done here: up to where the gradients would be taken."""
    sides = []

    def rows(task):
        with Linearised(task.volumes, task.camera, march=task.marches, pixels=[0]) as seen:
            sides.append(seen.medium.side)
        return []

    monkeypatch.setattr(CheckTask, "rows", rows)
    monkeypatch.setattr(check_process, "_run", check_process._main)
    check_gradients([replace(BALL, provenance={"supersample": 2}), BALL], CAMERA, arch="auto")
    assert sides == [1]


@pytest.mark.whole
def test_in_single_precision_only_the_dot_test_is_made():
    report = check_gradients(BALL, [CAMERA], ["pose"], precision="f32", march=March(mode="additive"))
    (row,) = report.rows
    assert (row.precision, row.mode, row.difference, row.worst) == ("f32", "additive", None, None)
    assert row.dot < 1e-5
    assert report.good


class Wrong(Linearised):
    """An adjoint, or both it and its tangent, off by a little in one group."""

    by_tangent = False

    def adjoint(self, d_image):
        found = super().adjoint(d_image)
        object.__setattr__(found, "focal", found.focal * 1.0001)
        return found

    def tangents(self, dots):
        out = super().tangents(dots)
        return out * (1.0001 if self.by_tangent and dots[0].focal is not None else 1.0)


@pytest.mark.parametrize("by_tangent", [False, True], ids=["adjoint", "adjoint and tangent"])
def test_a_gradient_wrong_by_one_in_ten_thousand_is_found(by_tangent):
    with Wrong(BALL, CAMERA) as seen:
        seen.by_tangent = by_tangent
        verdicts = {row.parameter: row.verdict for row in check_rows(seen, ["pose", "focal"])}
    assert verdicts == {"pose": "good", "focal": "wrong"}


class Blind(Linearised):
    """Tangent and adjoint agree in leaving something out."""

    left_out = (slice(None), 3)

    def adjoint(self, d_image):
        d_image = np.array(d_image)
        d_image[self.left_out] = 0
        return super().adjoint(d_image)

    def tangents(self, dots):
        out = super().tangents(dots)
        out[self.left_out] = 0
        return out


@pytest.mark.parametrize("left_out", [(slice(None), 3), (slice(0, None, 2),), (slice(None),)], ids=["T", "rays", "all"])
def test_slopes_that_are_missing_are_found(left_out):
    """Though every dot test is passed: what is there is right."""
    with Blind(BALL, CAMERA) as seen:
        seen.left_out = left_out
        assert [row.verdict for row in check_rows(seen, ["pose", "focal"])] == ["wrong", "wrong"]


def test_an_opaque_fog_has_slopes_too_small_to_be_checked_and_not_wrong_ones():
    fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 9.0), shape=(8, 8, 8))
    with Linearised(fog, Camera.look_at((0, -4, 0), fov=0.2, width=8, height=8)) as seen:
        verdicts = [row.verdict for row in check_rows(seen, ["density", "pose", "step", "background"])]
    assert "wrong" not in verdicts
    assert "flat" in verdicts


@pytest.mark.whole
def test_in_single_precision_too_a_fog_is_flat_and_not_good(single):
    fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 9.0), shape=(8, 8, 8))
    fog = replace(fog, activation=Activation())  # whose kernels tests/kernels/test_geometry.py has in that precision
    camera = Camera.look_at((0, -4, 0), fov=0.2, width=8, height=8)
    march = replace(EXACT, jitter=1.0)
    rows = single(CheckTask([fog], camera, [march], ["pose", "step"], 256, 0, False).rows)
    assert [(row.precision, row.verdict) for row in rows] == [("f32", "flat")] * 2
    assert "nothing was checked" in str(GradientReport(tuple(rows), 1.0))


def test_a_volume_at_a_kink_is_told_from_a_wrong_gradient():
    like_the_ball = Activation("relu", colour="clamped")
    flat = Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 3)), np.diag([0.5, 0.5, 0.5, 1]), like_the_ball)
    with Linearised(flat, Camera.look_at((0.7, -4, 0.8), (0.7, 0.7, 0.7), width=8, height=8)) as seen:
        rows = check_rows(seen, ["density", "background"])
    assert [row.verdict for row in rows] == ["at a kink", "good"]
    assert rows[0].difference is None
    assert rows[0].kinks == 1


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: check_gradients(BALL, CAMERA, ["tilt"]), "parameters have 'tilt', want some of density"),
        (
            lambda: check_gradients(BALL, CAMERA, "colour", march=March(mode="x-ray")),
            "no gradient by colour",
        ),
        (
            lambda: check_gradients(BALL, []),
            "want a Volume|want Views, a Camera or a list with at least one",
        ),
        (
            lambda: check_gradients(CAMERA, BALL),
            "want a Volume|want Views, a Camera or a list with at least one",
        ),
        (lambda: check_gradients(BALL, CAMERA, precision="f16"), "precision is 'f16'"),
        (lambda: check_gradients(BALL, CAMERA, rays=0), "rays is 0"),
        (lambda: check_gradients([BALL] * 2, CAMERA, ["pose"]), "together have no gradient by pose, want some of dens"),
        (lambda: check_gradients([BALL] * 2, CAMERA, ["table"]), "no gradient by table"),
        (lambda: check_gradients([BALL] * 2, CAMERA, march=[March()]), "marches are 1, volumes 2"),
        (lambda: check_gradients(BALL, CAMERA, march=[March()]), "marches are 1, volume is one; give one rm.March"),
        (lambda: check_gradients([], CAMERA), "volume is 0 of them"),
    ],
)
def test_what_cannot_be_checked_is_said(ask, said):
    with pytest.raises(RaymarchError, match=said):
        ask()


@pytest.mark.whole  # the README's own command stands for it
def test_the_command_prints_its_rows_and_every_gradient_of_a_users_volume_is_good(tmp_path, capsys):
    """For programs as JSON, for people as a table; exit 0 where all is right."""
    write_set(tmp_path / "set")
    save(BALL, tmp_path / "ball.h5")
    command = ["check-gradients", str(tmp_path / "ball.h5"), str(tmp_path / "set")]
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--json", "--rays", "32"])
    assert not ended.value.code
    (line,) = capsys.readouterr().out.splitlines()
    rows = json.loads(line)["rows"]
    assert [row["parameter"] for row in rows] == list(GROUPS)
    assert {"parameter", "mode", "precision", "dot", "difference", "worst"} <= set(rows[0])
    for row in rows:
        assert (row["mode"], row["precision"], row["verdict"]) == ("emission-absorption", "f64", "good"), row
        assert row["dot"] < 1e-12 and row["difference"] < 1e-7, row
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--parameters", "tilt"])
    assert ended.value.code == 1
    assert "parameters have 'tilt'" in capsys.readouterr().err


def test_the_shell_checks_a_scan_through_a_table_from_an_orbit_where_there_is_no_image_set(tmp_path, monkeypatch):
    """The march that the options say, and cameras all around: what they check is of other tests."""
    asked = {}

    def check(volume, where, names, **how):
        asked.update(how, cameras=where)
        return GradientReport((), 0.0)

    monkeypatch.setattr(check_process, "check_gradients", check)
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 8)] * 3, indexing="ij"), -1)
    save(ScalarVolume(1000 * np.exp(-4 * (x**2).sum(-1))), tmp_path / "scan.h5")
    line = ["check-gradients", str(tmp_path / "scan.h5"), "--table", "bone,0,900,0.4", "--shading", "--step", "0.7"]
    with pytest.raises(SystemExit) as ended:
        cli.main(line)
    march, cameras = asked["march"], asked["cameras"]
    assert ended.value.code == 0 and len({tuple(camera.position) for camera in cameras}) == 8
    assert (march.mode, march.step, march.transfer.values[-1]) == ("transfer", 0.7, 900) and march.shading is not None
    assert march.min_transmittance == march.min_weight == 0
    with pytest.raises(SystemExit) as ended:
        cli.main([*line, "--holdout", "4"])
    assert ended.value.code == 2


def test_widths_are_tried_from_the_likeliest():
    assert checks.DIFFERENCE_WIDTHS[0] == 1e-5
    assert sorted(checks.DIFFERENCE_WIDTHS) == [10.0**-k for k in range(7, 2, -1)]


def test_the_part_that_is_checked_lies_where_it_was_in_the_whole():
    """Of a volume of more samples than a check takes: every sample keeps its value and its place."""
    big = Volume.from_function(
        lambda p: 9 * np.exp(-20 * ((p - [1.5, 0, 0]) ** 2).sum(-1)),
        lambda p: 0.5 + 0.1 * p,
        shape=(100, 20, 20),
        box=[(-2, -1, -1), (2, 1, 1)],
    )
    part = crop_met(big, Camera.look_at((1.5, -4, 0), (1.5, 0, 0), width=32, height=32), 0)
    assert part.shape == (64, 20, 20)
    index = np.linalg.inv(big.world_from_index) @ part.world_from_index @ [0, 0, 0, 1]
    np.testing.assert_allclose(index, [36, 0, 0, 1], atol=1e-9)
    np.testing.assert_array_equal(part.density, big.density[36:])
    np.testing.assert_array_equal(part.features, big.features[36:])


@pytest.mark.parametrize(("verdict", "code"), [("good", 0), ("at a kink", 0), ("wrong", 1)])
def test_the_command_ends_with_1_where_a_gradient_is_wrong(verdict, code, tmp_path, monkeypatch, capsys):
    row = GradientRow("pose", "x-ray", "f64", 0.0, None, None, 0.0, verdict)
    monkeypatch.setattr(check_process, "check_gradients", lambda *_, **__: GradientReport((row,), 1.0, (2, 2, 2)))
    write_set(tmp_path / "set")
    save(BALL, tmp_path / "ball.h5")
    with pytest.raises(SystemExit) as ended:
        cli.main(["check-gradients", str(tmp_path / "ball.h5"), str(tmp_path / "set"), "--json"])
    assert ended.value.code == code
    assert json.loads(capsys.readouterr().out)["rows"][0]["verdict"] == verdict


@pytest.mark.parametrize("own", ["mode", "density activation"])
def test_what_is_of_this_process_alone_is_not_checked_in_another_precision(own):
    march, volume = March(), BALL
    if own == "mode":
        march = March(mode=replace(march.rule, name="mine"))
    else:
        mine = replace(volume.activation.density_rule, name="mine")
        volume = replace(volume, activation=replace(volume.activation, density=mine))
    with pytest.raises(RaymarchError, match=f"{own} 'mine' is an object of this process, where precision f32 asked"):
        check_gradients(volume, CAMERA, precision="f32", march=march, arch="auto")


def test_what_is_of_this_process_alone_is_not_checked_on_another_device():
    march, other = March(mode=replace(March().rule, name="mine")), "cuda" if runtime.runs_on_cpu() else "cpu"
    with pytest.raises(RaymarchError, match=f"mode 'mine' is an object of this process, where arch {other} asked for"):
        check_gradients(BALL, CAMERA, ["background"], march=march, arch=other)


def test_a_volume_with_an_activation_of_ones_own_is_checked_in_this_process():
    ours = DENSITY_FUNCTIONS[BALL.activation.density]
    mine = replace(BALL.activation.density_rule, name="mine", value=ours.value, slope=ours.slope)
    volume = replace(BALL, activation=replace(BALL.activation, density=mine))
    report = check_gradients(volume, CAMERA, ["background"], rays=16, arch="auto")
    assert [row.verdict for row in report.rows] == ["good"]


@pytest.mark.whole
@pytest.mark.parametrize(("degree", "element"), [(2, (4, 0)), (3, (12, 2))])
def test_a_mistyped_constant_of_one_harmonic_is_found_in_a_mixture_of_all(degree, element, monkeypatch):
    """Tangent and adjoint are wrong alike, so that every dot test is passed. Last, as it frees what others compiled."""
    rng = np.random.default_rng(0)
    mixed = Volume(
        BALL.density,
        rng.normal(0, 0.5, (*BALL.shape, 3 * (degree + 1) ** 2)),
        BALL.world_from_index,
        Activation("relu"),
    )
    pool.release()  # or the kernels of before would serve, and those of here serve others
    monkeypatch.setattr(colour, "basis_slope", worker.mistyped(*element))
    with Linearised(mixed, CAMERA, columns=1) as seen:
        (row,) = check_rows(seen, ["focal"])
    pool.release()
    assert row.verdict == "wrong"
    assert row.dot < 1e-12 < 1e-6 < row.difference
