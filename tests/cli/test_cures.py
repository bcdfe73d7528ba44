"""Law of cures: for each mistake in the list, the line that says the cure; then what it says is done, and it works.

A renderer that compiles nothing stands in for the real one, so that a hundred commands take seconds.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image
from skips import require_extra

from raymarch import cli
from raymarch.cli import shell_messages
from raymarch.io.volumes.volume_file import save
from raymarch.rendering.renderer import Rendering
from raymarch.volumes.volume import Volume


class Grey:
    """A renderer of grey pictures."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def render(self, camera, background=None, *, depth=True, normals=False):
        size = camera.height, camera.width
        return Rendering(np.full((*size, 3), 0.5, np.float32), np.ones(size, np.float32), np.ones(size, np.float32))


def image_set(folder: Path, sizes=((8, 6), (8, 6), (8, 6)), alpha=True):
    folder.mkdir()
    frames = []
    for i, (width, height) in enumerate(sizes):
        pose = np.eye(4)
        pose[:3, 3] = [0.3 * i, 0, 4]
        frames.append(
            {"file_path": f"r_{i}.png", "transform_matrix": pose.tolist(), "w": width, "h": height, "fl_x": 9.0}
        )
        Image.fromarray(np.full((height, width, 4 if alpha else 3), 200 + i, np.uint8)).save(folder / f"r_{i}.png")
    (folder / "transforms.json").write_text(json.dumps({"frames": frames}))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder: volumes, image sets, files of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("raymarch.rendering.renderer.Renderer", Grey)
    save(Volume.from_function(lambda p: 4 + 4 * p[..., 0], lambda p: 0 * p + 0.5, shape=(6, 6, 6)), "v.h5")
    values = np.arange(216, dtype=np.float32).reshape(6, 6, 6)
    np.save("head.npy", values)
    np.save("holes.npy", np.where(values == 7, np.nan, values))
    np.save("colours.npy", np.stack([values] * 3, -1))
    Path("raw.bin").write_bytes(bytes(range(60)))
    image_set(tmp_path / "set")
    image_set(tmp_path / "sizes", ((8, 6), (6, 8)))
    image_set(tmp_path / "plain", alpha=False)
    image_set(tmp_path / "rig", alpha=False)
    Path("rig/depths").mkdir()
    for i in range(3):
        Image.new("L", (4, 4), 9).save(f"rig/depths/{i}.png")
    cube = np.zeros((6, 6, 6, 4))
    save(Volume(cube[..., 0], cube, np.eye(4), channels=("red", "green", "blue", "heat")), "heat.h5")
    Path("photos").mkdir()
    shutil.copy("set/r_0.png", "photos/0.png")
    Path("mine").mkdir()
    Image.new("L", (4, 4)).save("mine/0000.png")
    Image.new("L", (4, 4)).save("mine.png")
    Path("mine.nrrd").write_text("a list of groceries")
    Path("mine.gif").write_text("a list of groceries")
    Path("mine.ply").write_text("a list of groceries")
    Path("notes.txt").write_text("a list of groceries")
    keys = [{"position": p, "target": [0, 0, 0], "up": [0, 0, 1], "fov": 40} for p in ([4, 0, 1], [0, 4, 2])]
    Path("keys.json").write_text(json.dumps(keys))
    Path("one.json").write_text(json.dumps(keys[:1]))
    try:
        os.symlink(tmp_path / "set" / "r_0.png", tmp_path / "sizes" / "away.png")
        document = json.loads(Path("sizes/transforms.json").read_text())
        document["frames"][0]["file_path"] = "away.png"
        Path("sizes/transforms.json").write_text(json.dumps(document))
    except OSError:  # Windows, where not everybody may
        pass
    return tmp_path


def ran(line, capsys):
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(line))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


ORBIT = "render v.h5 --orbit 2 --size 6"
CURES = [  # a line that fails, what stderr says, and the lines that this makes of it
    # Names and suffixes.
    ("info rig", "is an image set, want a volume file; raymarch fit rig --out", ["doctor rig"]),
    ("info v", "did you mean v.h5?", ["info v.h5"]),
    ("info vol/v.h5", "check the path", ["info v.h5"]),
    ("info '*.npy'", "such as colours.npy", ["info colours.npy --channel 0"]),
    ("convert head.npy new.nrd", "end the name in .h5, .hdf5, .nrrd", ["convert head.npy new.nrrd", "info new.nrrd"]),
    ("convert head.npy head.npy", "choose another name", ["convert head.npy other.npy"]),
    ("convert set set.zip", "end the name in .h5 or .hdf5", ["convert set set.h5", "doctor set.h5"]),
    ("export v.h5 new.fbx", ".stl, pages as .html; end the name in one of them", ["export v.h5 new.ply"]),
    ("export v.h5 v.h5", "choose another name", ["export v.h5 v.obj"]),
    ("slices head.npy --out s.jpg", "end the name in .png", ["slices head.npy --out s.png"]),
    (f"{ORBIT} --out clip.avi", "end the name in one of them", [f"{ORBIT} --out clip.gif"]),
    (f"{ORBIT} --out new.png", "leave the suffix out", [f"{ORBIT} --out new"]),
    (f"{ORBIT} --out clip.gifv", "did you mean clip.gif?", [f"{ORBIT} --out clip.gif"]),
    (f"{ORBIT} --out gif", "such as clip.gif", [f"{ORBIT} --out clip.gif"]),
    (f"{ORBIT} --out new.h5", "want a folder", [f"{ORBIT} --out new"]),
    (f"{ORBIT} --out a/b", "create its parent", ["!mkdir a", f"{ORBIT} --out a/b"]),
    (f"{ORBIT} --out a/b.gif", "create it first", ["!mkdir a", f"{ORBIT} --out a/b.gif"]),
    (f"{ORBIT} --out ''", "take . for the one you are in", [f"{ORBIT} --out ."]),
    (f"{ORBIT} --out v.h5", "choose another", [f"{ORBIT} --out new"]),
    ("evaluate v.h5 set --images e.png", "leave the suffix out", ["evaluate v.h5 set --images e"]),
    ("evaluate v.h5 set --images e --errors e", "choose another", ["evaluate v.h5 set --images e --errors f"]),
    ("evaluate v.h5 set --sheet s", "end the name in .png", ["evaluate v.h5 set --sheet s.png"]),
    ("evaluate v.h5 set --images set/e", "choose another", ["evaluate v.h5 set --images e"]),
    # Files of others.
    (f"{ORBIT} --out mine", "choose another name, or --overwrite", [f"{ORBIT} --out mine --overwrite"]),
    (f"{ORBIT} --out mine", "choose another name", [f"{ORBIT} --out theirs"]),
    (f"{ORBIT} --out mine.gif", "or --overwrite", [f"{ORBIT} --out mine.gif --overwrite"]),
    ("convert head.npy mine.nrrd", "or --overwrite", ["convert head.npy mine.nrrd --overwrite", "info mine.nrrd"]),
    ("export v.h5 mine.ply", "or --overwrite", ["export v.h5 mine.ply --overwrite"]),
    ("slices head.npy --out mine.png", "or --overwrite", ["slices head.npy --out mine.png --overwrite"]),
    ("evaluate v.h5 set --sheet mine.png", "or --overwrite", ["evaluate v.h5 set --sheet mine.png --overwrite"]),
    # Volumes.
    ("convert holes.npy new.nrrd", "--nan empty takes them", ["convert holes.npy new.nrrd --nan empty"]),
    ("convert holes.npy new.nrrd", "--nan 0 as that number", ["convert holes.npy new.nrrd --nan 0"]),
    ("slices holes.npy --out s.png", "raymarch convert holes.npy whole.h5 --nan empty",
     ["convert holes.npy whole.h5 --nan empty", "slices whole.h5 --out s.png"]),
    ("slices colours.npy --out s.png", "choose one by --channel 0", ["slices colours.npy --channel 0 --out s.png"]),
    ("render colours.npy --orbit 1 --size 6 --out new", "choose one by --channel 0",
     ["render colours.npy --channel 0 --orbit 1 --size 6 --out new"]),
    ("slices head.npy --level 1 --out s.png", "--level is 1, but there is only one; leave it out",
     ["slices head.npy --out s.png"]),
    ("info head.npy --time-point 3", "--time-point is 3, but there is only one; leave it out", ["info head.npy"]),
    ("convert raw.bin new.nrrd", "raymarch convert --shape X,Y,Z --dtype TYPE",
     ["convert raw.bin new.nrrd --shape 3,4,5 --dtype uint8"]),
    ("convert raw.bin new.nrrd --shape 4,4,4 --dtype uint8", "correct --shape or --dtype",
     ["convert raw.bin new.nrrd --shape 3,4,5 --dtype uint8"]),
    ("convert raw.bin new.nrrd --shape 3,4,4 --dtype uint8", "or say by --offset how many bytes come before",
     ["convert raw.bin new.nrrd --shape 3,4,4 --dtype uint8 --offset 12"]),
    ("convert raw.bin new.nrrd --shape 3,4,5", "raw values need --shape and --dtype, both",
     ["convert raw.bin new.nrrd --shape 3,4,5 --dtype uint8"]),
    ("convert raw.bin new.nrrd --shape 3,4,5 --dtype int7", "such as uint8",
     ["convert raw.bin new.nrrd --shape 3,4,5 --dtype uint8"]),
    ("convert head.npy new.nrrd --crop 0,0,0,4,4,4", "did you mean 0,4,0,4,0,4?",
     ["convert head.npy new.nrrd --crop 0,4,0,4,0,4"]),
    ("convert head.npy new.nrrd --nan zero", "want a number, or empty", ["convert head.npy new.nrrd --nan 0"]),
    ("convert v.h5 new.nrrd --holdout 3", "is for image sets", ["convert v.h5 new.nrrd"]),
    ("convert set new.h5 --stride 2", "is for volumes", ["convert set new.h5"]),
    ("export v.h5 new.ply --iso 1e9", "values are from 0 to 8: the surface is empty; choose one between them",
     ["export v.h5 new.ply --iso 5"]),
    ("export v.h5 new.stl --points 9", ".ply, .glb; end the name in one of them", ["export v.h5 new.ply --points 9"]),
    ("export v.h5 new.ply --points 9 --faces 9", "take one of them", ["export v.h5 new.ply --points 9"]),
    ("export v.h5 new.ply --box 5,5,5,6,6,6", "whose box is -1 -1 -1 to 1 1 1",
     ["export v.h5 new.ply --box -1,-1,-1,1,1,1"]),
    ("export v.h5 new.html --faces 9", "is for meshes, and a page has all of the volume; leave it out",
     ["export v.h5 new.html"]),
    ("export v.h5 new.ply --title T", "is for pages, and OUT is a mesh; leave it out",
     ["export v.h5 new.html --title T"]),
    ("export v.h5 new.html --pictures", "the photographs of --views DATA; give it",
     ["export v.h5 new.html --pictures --views set"]),
    ("export v.h5 new.html --mode isosurface --iso 1e9", "choose one between",
     ["export v.h5 new.html --mode isosurface --iso 5"]),
    ("export v.h5 new.html --max-mb 0.05", "give 0.2 or more", ["export v.h5 new.html --max-mb 0.2"]),
    ("slices head.npy --at 9,9,9 --out s.png", "--at is 9 9 9, want a point in the volume's box, 0 0 0 to 5 5 5",
     ["slices head.npy --at 2,2,2 --out s.png"]),
    ("slices head.npy --colour --out s.png", "leave --colour out", ["slices head.npy --out s.png"]),
    ("slices v.h5 --colour --window 0,1 --out s.png", "leave --window and --colormap out",
     ["slices v.h5 --colour --out s.png"]),
    ("slices head.npy --colormap hot2 --out s.png", "as viridis", ["slices head.npy --colormap viridis --out s.png"]),
    ("info --time", "are about a FILE; give it", ["info v.h5"]),
    # Where to look from, and how.
    ("render v.h5 --out new", "--orbit COUNT", ["render v.h5 --orbit 2 --size 6 --out new"]),
    ("render v.h5 --path cameras --out new", "those of --views DATA; give both",
     ["render v.h5 --path cameras --views set --frames 3 --out new"]),
    ("render v.h5 --views set --size 9 --out new", "the cameras of --views DATA are what they are",
     ["render v.h5 --views set --out new"]),
    ("render v.h5 --orbit 2 --frames 3 --out new", "--orbit COUNT says its own count", [f"{ORBIT} --out new"]),
    ("render v.h5 --path keys.txt --out new", "a file that ends in .json",
     ["render v.h5 --path keys.json --frames 2 --size 6 --out new"]),
    ("render v.h5 --path one.json --out new", "want a list of two or more keys",
     ["render v.h5 --path keys.json --frames 2 --size 6 --out new"]),
    ("render v.h5 --views set --up z --out new", "--up is for --orbit, --position and --path spiral",
     [f"{ORBIT} --up z --out new"]),
    (f"{ORBIT} --fps 5 --out new", "leave it out", [f"{ORBIT} --out new"]),
    (f"{ORBIT} --extras --out new.gif", "give a folder as --out, or leave them out", [f"{ORBIT} --extras --out new"]),
    (f"{ORBIT} --downscale 2 --out new", "give it", ["render v.h5 --views set --downscale 2 --split all --out new"]),
    (f"{ORBIT} --window 0,1 --out new", "leave it out", [f"{ORBIT} --out new"]),
    (f"{ORBIT} --mode maximum --iso 5 --out new", "leave it out, or say --mode isosurface",
     [f"{ORBIT} --mode isosurface --iso 5 --out new"]),
    ("render head.npy --orbit 1 --size 6 --mode maximum --table bone --out new", "or say --mode transfer",
     ["render head.npy --orbit 1 --size 6 --mode transfer --table bone --out new"]),
    ("render head.npy --orbit 1 --size 6 --table bone.png --out new", "the name of a colour map such as bone",
     ["render head.npy --orbit 1 --size 6 --table bone --out new"]),
    ("render head.npy --orbit 1 --size 6 --table bone,1 --out new", "MAP,LOW,HIGH",
     ["render head.npy --orbit 1 --size 6 --table bone,1,200 --out new"]),
    (f"{ORBIT} --with-table bone --out new", "give one for each", [f"{ORBIT} --out new"]),
    # Image sets.
    ("render set --views v.h5 --out new", "did you mean raymarch render v.h5 --views set?",
     ["render v.h5 --views set --split all --out new"]),
    ("evaluate set v.h5", "did you mean raymarch evaluate v.h5 set?", ["evaluate v.h5 set"]),
    ("evaluate v.h5 set --split tests", "it has train, test and all; choose one", ["evaluate v.h5 set --split test"]),
    ("evaluate v.h5 set/transforms.json", "try set", ["evaluate v.h5 set"]),
    ("evaluate v.h5 v.h5", "want an image set here", ["evaluate v.h5 set"]),
    ("render v.h5 --position 4,0,1 --size 6 --out p.jpg", "end the name in .png",
     ["render v.h5 --position 4,0,1 --size 6 --out p.png"]),
    ("render v.h5 --cubemap 4 --out p.jpeg", "end the name in .png", ["render v.h5 --cubemap 4 --out p.png"]),
    ("doctor set --volume heat.h5", "leave it out, raymarch evaluate heat.h5 set", ["doctor set"]),
    ("doctor set --volume head.npy", "take a fitted one", ["doctor set --volume v.h5"]),
    ("render v.h5 --views sizes --split all --out new", "--follow-links if you trust the set",
     ["render v.h5 --views sizes --split all --follow-links --out new"]),
    ("render v.h5 --views sizes --split all --follow-links --out new.gif", "take --path cameras",
     ["render v.h5 --views sizes --split all --follow-links --path cameras --frames 2 --out new.gif"]),
    ("fit set --resume --out new.h5", "leave --resume out", ["fit set --out new.h5 --dry-run --steps 0 || usage"]),
    ("fit photos --out new.h5", "raymarch cameras PHOTOS --out SET", []),  # tests/sfm has it
]  # fmt: skip


def _marked(case):
    return pytest.param(case, marks=pytest.mark.extra) if "export" in case[0] else case


@pytest.mark.parametrize("case", [_marked(case) for case in CURES], ids=lambda case: case[0])
def test_the_cure_that_is_said_cures(case, here, capsys):
    mistake, told, lines = case
    if "sizes" in mistake and not Path("sizes/away.png").is_symlink():
        pytest.skip("links may not be made on this Windows")
    if "export" in mistake:
        require_extra("skimage", "formats")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    code, out, err = ran(mistake, capsys)
    assert code in (1, 2) and told in err, err
    assert not shell_messages.PYTHON_WORDS.search(re.sub(r"in Python.*|or rm\.evaluate.*", "", err)), err
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before
    for line in lines:
        if line.startswith("!mkdir "):
            os.mkdir(line.removeprefix("!mkdir "))
        elif not line.endswith("|| usage"):
            code, out, err = ran(line, capsys)
            assert out and "unreadable" not in out, err
            assert code == 0 or line.startswith("doctor"), err  # which finds other things in so small a set


def test_how_many_cures_are_run():
    assert sum(bool(lines) for _, _, lines in CURES) >= 75


def texts():
    """Texts of the package that may be messages, with X for what is put into them, and where each is."""
    root = Path(cli.__file__).parents[1]
    for file in sorted(root.rglob("*.py")):
        room = file.relative_to(root).parts[0]
        skipped = ("tape", "torch", "gradients", "html", "kernels", "viewer", "plot")
        if room in skipped or file.name == "shell_messages.py":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        with_doc = (ast.FunctionDef, ast.ClassDef, ast.Module)
        bodies = [node.body for node in ast.walk(tree) if isinstance(node, with_doc)]
        parts = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
        parts |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                whole = "".join(str(p.value) if isinstance(p, ast.Constant) else "7" for p in node.values)
                yield f"{file.relative_to(root)}:{node.lineno}", whole
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                yield f"{file.relative_to(root)}:{node.lineno}", node.value


ARGUMENT = re.compile(r"(?<![-\w<=.])[a-z][a-z_]*=(?=[\w'\"(\[{]|[,; )]|$)|=True in Python")
NO_MESSAGE = re.compile(
    r"[<\n]|--set|NAME=VALUE|run_name=|\?|Views\(|Fit\(|slots=|folder=True|in Python[:,] |^, \w+=|^sorted\("
)
RECIPE = re.compile(
    r"vdb_tool .*|\b(objective=)?(rm|np|numpy|h5py|tifffile|pydicom|zarr|nibabel|SimpleITK)\.\w+(\.\w+)*\(.*"
)  # a line of Python, or of another program


def test_no_message_of_a_verb_names_an_argument_of_python():
    """Whatever the package says, a verb says by options; but for a line of Python that is a cure as it stands."""
    verbs = cli.cli.commands
    found = []
    for where, text in texts():
        if not ARGUMENT.search(text) or NO_MESSAGE.search(text):
            continue
        for name in ("fit", "render", "info", "convert"):
            said = shell_messages.shell_message(f"p: {text}", click.Context(verbs[name], info_name=name))
            if ARGUMENT.search(RECIPE.sub("", said)):
                found.append((where, name, said))
    assert not found


PHRASES = {  # as Python says it, verb, as the verb says it
    ("f.h5: x; choose another name, or --overwrite (overwrite=True in Python)", "render"): "name, or --overwrite",
    ("f: go on with it by --resume (resume=True in Python), or lose it by --overwrite (overwrite=True)", "fit"):
        "f: go on with it by --resume, or lose it by --overwrite",
    ("a.vti: has 2 channels; choose one by channel=0", "slices"): "choose one by --channel 0",
    ("a.vti: has 2 channels; choose one by channel=0", "view"):
        "take one out by raymarch convert a.vti one.h5 --channel 0",
    ("a b.vti: has 2; choose one by channel=0", "view"): "raymarch convert 'a b.vti' one.h5 --channel 0",
    ("d: has 9 points in time; choose one by time=0 to time=8", "info"): "--time-point 0 to --time-point 8",
    ("n.npy: says no spacing; 1 is assumed (rm.load takes spacing=)", "convert"): "(--spacing says another)",
    ("p: formats 'NRRD' and 'TIFF' claim it alike; choose by format='NRRD' or format='TIFF'", "info"):
        "choose by --format NRRD or --format TIFF",
    ("p: formats 'NRRD' and 'TIFF' claim it alike; choose by format='NRRD' or format='TIFF'", "check-gradients"):
        "end its name in .nrrd or .tif",
    ("s: the borders are 1,1,1 but the background is 0,0,0; say --background 1,1,1,"
     " background=(1, 1, 1) of rm.load_views", "fit"): "say --background 1,1,1",
    ("box is [1], want six numbers", "fit"): "--box is [1]",
    ("f: level is 3, but there is only one; leave it out", "slices"): "f: --level is 3",
    ("f: time is 3, but there is only one; leave it out", "info"): "f: --time-point is 3",
    ("mode x has no table, want a transfer function; give it transfer=rm.TransferFunction.of_colormap('viridis', low,"
     " high)", "render"): "give it by --table viridis",
}  # fmt: skip


@pytest.mark.parametrize(("said", "verb"), PHRASES)
def test_words_of_python_are_those_of_the_verb(said, verb):
    command = cli.cli.commands[verb]
    assert PHRASES[said, verb] in shell_messages.shell_message(said, click.Context(command, info_name=verb))
