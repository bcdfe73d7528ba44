"""Laws of files that OpenVDB reads and writes itself, where Debian's python3-openvdb and libopenvdb-tools are there.

The module is of the system's Python, not of this one, so both hand each other arrays in files. Blender draws a fog
where it is installed.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from skips import require_extra
from test_openvdb import MAPS, MIRRORED, WAYS, fit, fog, saved

import raymarch as rm

PYTHON = "/usr/bin/python3"
TIMEOUT = 240  # seconds
PRELUDE = "import json, sys\nimport numpy as np\nimport pyopenvdb as vdb\n"
TELL = """
told = {}
for grid in vdb.readAll(sys.argv[1])[0]:
    low, high = grid.evalActiveVoxelBoundingBox()
    vector = grid.valueTypeName.startswith("vec3")
    values = np.zeros(tuple(json.loads(sys.argv[2])) + ((3,) if vector else ()), np.float32)
    grid.copyToArray(values)
    np.save(f"{sys.argv[1]}.{grid.name}.npy", values)
    corners = [grid.transform.indexToWorld(one) for one in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]]
    told[grid.name] = {"active": grid.activeVoxelCount(), "box": [low, high], "corners": corners, "half":
        grid.saveFloatAsHalf, "leaves": grid.leafCount(), "class": grid.gridClass, "memory": grid.memUsage(),
        "said": grid["file_mem_bytes"], "background": grid.background}
print(json.dumps(told))
"""
MAKE = """
rng = np.random.default_rng(3)
fog = vdb.FloatGrid(0.25)
fog.name, fog.gridClass = "density", "fog volume"
fog.copyFromArray(rng.random((24, 24, 24)).astype(np.float32) + 1)
fog.fill((24, 0, 0), (31, 7, 7), 3.5)
fog.fill((128, 0, 0), (255, 127, 127), 4.5)
cells = fog.getAccessor()
kinds = {(0, 0, 0): (-0.25, 0.25), (8, 0, 0): (7.0, 7.0), (0, 8, 0): (7.0, 0.25), (0, 0, 8): (7.0, 9.0),
         (8, 8, 0): (0.25, 0.25), (8, 0, 8): (-0.25, -0.25), (0, 8, 8): range(16)}
for (a, b, c), values in kinds.items():
    for i in range(8):
        for j in range(8):
            cells.setValueOff((a + i, b + j, c + i), float(values[(i + j) % len(values)]))
fog.transform = vdb.createLinearTransform([[0.1, 0, 0, 0], [0, 0.2, 0, 0], [0, 0.05, 0.3, 0], [1, 2, 3, 1]])
colours = vdb.Vec3SGrid((0.5, 0.25, 0))
colours.name, colours.transform = "Cd", fog.transform
colours.copyFromArray(rng.random((24, 24, 24, 3)).astype(np.float32))
other = vdb.FloatGrid()
other.name = "heat"
other.copyFromArray(rng.random((9, 10, 11)).astype(np.float32), ijk=(-5, 6, -7))
fog.saveFloatAsHalf = colours.saveFloatAsHalf = sys.argv[2] == "half"
vdb.write(sys.argv[1], [fog, colours, other])
values = np.zeros((256, 128, 128), np.float32)
fog.copyToArray(values)
np.savez(sys.argv[1] + ".npz", fog=values, colours=rng.random(0), low=fog.evalActiveVoxelBoundingBox()[0])
more = np.zeros((24, 24, 24, 3), np.float32)
colours.copyToArray(more)
heat = np.zeros((9, 10, 11), np.float32)
other.copyToArray(heat, ijk=(-5, 6, -7))
np.savez(sys.argv[1] + ".npz", fog=values, colours=more, heat=heat)
"""


@functools.cache
def missing() -> str:
    """What is not there of OpenVDB; "" where all is."""
    if any(shutil.which(tool) is None for tool in ("vdb_print", "vdb_tool")) or not Path(PYTHON).exists():
        return "its tools"
    done = subprocess.run([PYTHON, "-I", "-c", PRELUDE], capture_output=True, timeout=TIMEOUT, check=False)
    return "its Python module" if done.returncode else ""


@pytest.fixture(autouse=True)
def openvdb(request):
    if "blender" not in request.node.name and missing():
        pytest.skip(f"no OpenVDB: {missing()} is not installed")


def ask(program, *words):
    """What a program of OpenVDB's Python says."""
    command = [PYTHON, "-I", "-c", PRELUDE + program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tell(path, shape):
    """What OpenVDB reads in a file: facts by grid, and its values."""
    told = json.loads(ask(TELL, path, json.dumps(shape)))
    return {name: (facts, np.load(f"{path}.{name}.npy")) for name, facts in told.items()}


def tool(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
    return done.stdout


def require_place(facts, affine):
    for corner, index in zip(facts["corners"], ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True):
        np.testing.assert_allclose(corner, (affine @ [*index, 1])[:3], atol=1e-12)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_openvdb_reads_scalars_of_ours(how, tmp_path):
    volume = fog()
    ((facts, values),) = tell(saved(tmp_path, volume, **how), volume.shape).values()
    np.testing.assert_allclose(values, volume.values, rtol=2.0**-11 if how["half"] else 0)
    assert (facts["active"], facts["class"], facts["half"]) == (
        np.count_nonzero(volume.values),
        "fog volume",
        how["half"],
    )
    assert facts["box"] == [[0, 0, 0], [n - 1 for n in volume.shape]] and facts["memory"] == facts["said"]
    require_place(facts, volume.world_from_index)


@pytest.mark.parametrize("affine", [*MAPS.values(), MIRRORED], ids=[*MAPS, "mirrored"])
def test_openvdb_has_our_places(affine, tmp_path):
    ((facts, _),) = tell(saved(tmp_path, fog(world_from_index=affine)), (2, 2, 2)).values()
    require_place(facts, affine)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_openvdb_reads_fits_of_ours(how, tmp_path):
    volume = fit(1)
    told = tell(saved(tmp_path, volume, **how), volume.shape)
    there, rtol = volume.density > volume.activation.empty, 2.0**-11 if how["half"] else 1e-6
    facts, density = told["density"]
    np.testing.assert_allclose(density[there], volume.sigma()[there], rtol=rtol, atol=1e-6)
    assert facts["active"] == np.count_nonzero(density) and not density[~there].any()
    facts, colours = told["Cd"]
    found = rm.load(tmp_path / "a.vdb")
    display = np.where(colours > 0.0031308, 1.055 * colours ** (1 / 2.4) - 0.055, 12.92 * colours)
    np.testing.assert_allclose(display[there], 0.28209479177 * found.features[there] + 0.5, atol=1e-6)
    assert facts["leaves"] == found.bricks.count and facts["memory"] == facts["said"]
    np.testing.assert_allclose(facts["background"], [0.214] * 3, atol=1e-3)
    for option in ("-l", "-m"):
        said = tool("vdb_print", option, tmp_path / "a.vdb")
        assert "Cd" in said and "density" in said


@pytest.mark.extra
@pytest.mark.parametrize("codec", ["none", "zip", "active", "blosc", ""])
@pytest.mark.parametrize("half", ["", "half"])
def test_what_openvdb_writes_is_read(half, codec, tmp_path):
    path = tmp_path / "a.vdb"
    if codec in ("blosc", ""):
        require_extra("imagecodecs", "formats")
    ask(MAKE, path, half)
    with np.load(f"{path}.npz") as file:
        wanted = dict(file)
    if codec:
        tool("vdb_tool", "-read", path, "-write", f"codec={codec}", *["bits=16"] * bool(half), tmp_path / "b.vdb")
        path = tmp_path / "b.vdb"
    kept = 2.0**-11 if half else 0
    names = ("density", "Cd", "heat")
    channels = [rm.load(path, channel=k) for k in range(5)]
    found = {name: [one for one in channels if one.name == name] for name in names}
    (density,), colours, (heat,) = (found[name] for name in names)
    np.testing.assert_allclose(density.values, wanted["fog"], rtol=kept)
    np.testing.assert_allclose(np.stack([one.values for one in colours], -1), wanted["colours"], rtol=kept)
    np.testing.assert_allclose(heat.values, wanted["heat"], rtol=kept)
    assert heat.origin.tolist() == [-5, 6, -7]
    np.testing.assert_allclose(density.world_from_index[:3], [[0.1, 0, 0, 1], [0, 0.2, 0.05, 2], [0, 0, 0.3, 3]])
    both = rm.load(path)
    np.testing.assert_allclose(both.sigma(), np.maximum(wanted["fog"], 0), rtol=kept)


CURES = {
    "level set": "vdb_tool -sphere -write IN.vdb",
    "points": "vdb_tool -sphere -scatter density=10 -points2vdb -write IN.vdb",
}


@pytest.mark.extra
@pytest.mark.parametrize("kind", CURES)
def test_the_cure_of_a_grid_of_another_kind_works(kind, tmp_path):
    require_extra("imagecodecs", "formats")
    tool(*CURES[kind].replace("IN.vdb", f"{tmp_path}/IN.vdb").split())
    with pytest.raises(rm.RaymarchError) as told:
        rm.load(tmp_path / "IN.vdb")
    words = str(told.value)
    command = words[words.index("vdb_tool") :].split(", or")[0]
    tool(*[str(tmp_path / word) if word.endswith(".vdb") else word for word in command.split()])
    assert rm.load(tmp_path / "OUT.vdb").range[1] > 0


@pytest.mark.extra
def test_the_cure_of_blosc_works_without_its_library(tmp_path, monkeypatch):
    ask("g = vdb.FloatGrid()\ng.copyFromArray(np.random.rand(9, 9, 9))\nvdb.write(sys.argv[1], g)", tmp_path / "IN.vdb")
    monkeypatch.setitem(__import__("sys").modules, "imagecodecs", None)
    with pytest.raises(rm.RaymarchError, match="is packed by Blosc") as told:
        rm.load(tmp_path / "IN.vdb")
    command = str(told.value).partition(": vdb_tool ")[2].split()
    tool("vdb_tool", *[str(tmp_path / word) if word.endswith(".vdb") else word for word in command])
    assert rm.load(tmp_path / "OUT.vdb").shape == (9, 9, 9)


BLENDER = """
import json, os, sys
import bpy, mathutils, numpy as np
folder = sys.argv[-1]
told = json.load(open(os.path.join(folder, "camera.json")))
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
bpy.ops.object.volume_import(filepath=os.path.join(folder, "fog.vdb"), files=[{"name": "fog.vdb"}], directory=folder)
fog = bpy.context.object
fog.location = told["shift"]
material = bpy.data.materials.new("fog")
material.use_nodes = True
nodes, links = material.node_tree.nodes, material.node_tree.links
nodes.clear()
new = {name: nodes.new("ShaderNode" + name) for name in ("OutputMaterial", "VolumeAbsorption", "Emission", "AddShader")}
density, colour = (nodes.new("ShaderNodeAttribute") for _ in range(2))
density.attribute_name, colour.attribute_name = "density", "Cd"
new["VolumeAbsorption"].inputs["Color"].default_value = (0, 0, 0, 1)
links.new(density.outputs["Fac"], new["VolumeAbsorption"].inputs["Density"])
links.new(density.outputs["Fac"], new["Emission"].inputs["Strength"])
links.new(colour.outputs["Color"], new["Emission"].inputs["Color"])
for k, name in enumerate(("VolumeAbsorption", "Emission")):
    links.new(new[name].outputs[0], new["AddShader"].inputs[k])
links.new(new["AddShader"].outputs[0], new["OutputMaterial"].inputs["Volume"])
fog.data.materials.append(material)
lens = bpy.data.cameras.new("camera")
lens.sensor_fit, lens.sensor_width, lens.lens = "HORIZONTAL", 36, told["focal"] / told["size"][0] * 36
scene.camera = bpy.data.objects.new("camera", lens)
scene.collection.objects.link(scene.camera)
scene.camera.matrix_world = mathutils.Matrix(told["pose"])
scene.world = bpy.data.worlds.new("world")
scene.world.use_nodes = True
scene.world.node_tree.nodes["Background"].inputs[0].default_value = (0, 0, 0, 1)
scene.render.engine, scene.cycles.device, scene.cycles.samples = "CYCLES", "CPU", 16
scene.cycles.use_denoising, scene.cycles.volume_step_rate, scene.cycles.volume_max_steps = False, 0.25, 4096
scene.cycles.pixel_filter_type = "BOX"
scene.render.resolution_x, scene.render.resolution_y = told["size"]
scene.view_settings.view_transform = "Raw"
scene.render.image_settings.file_format, scene.render.image_settings.color_depth = "OPEN_EXR", "32"
scene.render.filepath = os.path.join(folder, "fog.exr")
bpy.ops.render.render(write_still=True)
picture = np.array(bpy.data.images.load(scene.render.filepath).pixels[:], np.float32)
np.save(os.path.join(folder, "fog.npy"), picture.reshape(told["size"][1], told["size"][0], -1)[::-1, :, :3])
"""


@pytest.mark.whole
@pytest.mark.parametrize(("shift", "least"), [(0, 30), (-0.5, 60)])
def test_blender_draws_a_grey_fog_as_raymarch_does(shift, least, tmp_path):
    """In linear light. Cycles has each sample half a voxel further along each axis, which a shift makes up for."""
    if shutil.which("blender") is None:
        pytest.skip("no Blender: it is not installed")

    def sigma(p):
        blob = np.clip(1 - np.linalg.norm((p - [0.15, -0.1, 0.2]) / [0.7, 0.5, 0.6], axis=-1), 0, 1)
        return 3 * blob + 6 * np.clip(1 - np.linalg.norm((p - [-0.4, 0.3, -0.3]) / [0.35, 0.3, 0.3], axis=-1), 0, 1)

    grey = 0.21404114  # linear light of 0.5
    ours = rm.Volume.from_function(sigma, lambda p: np.full(p.shape, 0.5), shape=(48, 48, 48), background=(0, 0, 0))
    rm.save(ours, tmp_path / "fog.vdb")
    camera = rm.Camera.look_at(eye=(2.2, -2.6, 1.4), width=96, height=72, fov=0.7)
    told = {"pose": np.asarray(camera.world_from_camera).tolist(), "focal": camera.focal[0], "size": [96, 72]}
    told["shift"] = [shift * ours.voxel] * 3
    (tmp_path / "camera.json").write_text(json.dumps(told))
    (tmp_path / "draw.py").write_text(BLENDER)
    command = ["blender", "-b", "--factory-startup", "--python", str(tmp_path / "draw.py"), "--", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (tmp_path / "fog.npy").exists(), done.stdout + done.stderr
    error = np.load(tmp_path / "fog.npy") / grey * 0.5 - rm.render(ours, camera)
    assert -10 * np.log10((error**2).mean()) > least
