"""What is given as an image set: other programs' folders, other kinds of files, odd paths."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from hostile_cases.case import Area, Case

area = Area("sets")


def fit_of(data: str, out: str = "out.h5") -> tuple[str, ...]:
    """A small fit of another set."""
    return ("fit", data, "--preset", "quick", "--steps", "3", "--resolution", "8", "--out", out)


def laid(*names: str, root: str = "foreign"):
    """Set up: a folder of another program, with files (or folders, ending in /) of these names."""

    def set_up(folder: Path) -> None:
        for name in names:
            path = folder / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(b"1 2 3\n")
        for i in range(3):
            shutil.copy(folder / f"set/train/r_{i}.png", folder / root / f"image{i}.png")

    return set_up


def refused(name: str, data: str, says: str, set_up=None, **more) -> Case:
    """A fit of what is no set."""
    return area.refused(name, fit_of(data), says, set_up, **more)


def named(name: str, says: str, *files: str) -> Case:
    """A folder of another program, whose kind must be named."""
    return refused(name, "foreign", says, laid(*files))


def renamed(name: str):
    """Set up: the set under another name."""
    return lambda folder: (folder / "set").rename(folder / name)


def odd(what: str, name: str, **more) -> Case:
    """A set whose path is odd."""
    return area.works(what, fit_of(name), renamed(name), makes=("out.h5",), **more)


def _zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "set.zip", "w") as file:
        file.write(folder / "set/transforms_train.json", "transforms_train.json")


def _linked(folder: Path) -> None:
    (folder / "link").symlink_to("set", target_is_directory=True)


def _links_out(folder: Path) -> None:
    """As data sets are often kept: the images are links to a store elsewhere."""
    (folder / "set/train").rename(folder / "store")
    (folder / "set/train").mkdir()
    for path in (folder / "store").iterdir():
        (folder / "set/train" / path.name).symlink_to(path)


def _folder_links_out(folder: Path) -> None:
    (folder / "set/train").rename(folder / "store")
    (folder / "set/train").symlink_to(folder / "store", target_is_directory=True)


def _two_suffixes(folder: Path) -> None:
    path = folder / "set/transforms_test.json"
    shutil.copy(folder / "set/test/r_0.png", folder / "set/test/same.png")
    shutil.copy(folder / "set/test/r_1.png", folder / "set/test/same.webp")
    text = path.read_text().replace("./test/r_0", "test/same.png").replace("./test/r_1", "test/same.webp")
    path.write_text(text)


def _two_folders(folder: Path) -> None:
    path = folder / "set/transforms_test.json"
    for i, side in enumerate(("left", "right")):
        (folder / "set" / side).mkdir()
        shutil.copy(folder / f"set/test/r_{i}.png", folder / "set" / side / "r.png")
    path.write_text(path.read_text().replace("./test/r_0", "left/r").replace("./test/r_1", "right/r"))


def _many_names(folder: Path) -> None:
    path = folder / "set/transforms_test.json"
    for i, name in enumerate(("a b ü", "é\u202e")):
        shutil.copy(folder / f"set/test/r_{i}.png", folder / "set/test" / f"{name}.png")
        path.write_text(path.read_text(encoding="utf-8").replace(f"./test/r_{i}", f"test/{name}"), encoding="utf-8")


def two_pictures(folder: Path, done) -> None:
    """Two images were said, two files must be there."""
    found = sorted(path.name for path in (folder / "pics").glob("*.png"))
    assert len(found) == 2, f"2 images, {len(found)} files: {found}"


PICTURES = ("pics", "pics/*.png")
EVALUATE = ("evaluate", "ball.h5", "set", "--images", "pics")

CASES = [
    refused("a folder that is not there", "nowhere", "nowhere.*no such folder"),
    refused("an empty folder", "empty", "empty", lambda f: (f / "empty").mkdir()),
    refused("no letters", "", "folder|set"),
    refused("the folder above the set", ".", r"set/|set\b"),
    refused("a folder of the set's images", "set/train", "set/train"),
    refused("the json file itself", "set/transforms_train.json", "is a file"),
    refused("an image", "set/train/r_0.png", "is a file"),
    refused("a volume", "ball.h5", "ball.h5: .*is a file"),
    refused("a zip of the set", "set.zip", "set.zip", _zipped),
    refused("a URL", "https://127.0.0.1/set", "URL|no such folder"),
    refused("/dev/null", "/dev/null", "/dev/null", needs=("posix",)),
    refused("a name of 5,000 characters", "a" * 5000, "aaa.*(long|such)", known="the line repeats the name"),
    area.python_refused("a name with a null character", 'rm.load_views("set\\0")', "null|set"),
    refused("half a character in the name", "s\udcff", "such folder"),
    refused("an escape code in the name", "\x1b[31mset\n", "such folder"),
    named("LLFF", "LLFF", "poses_bounds.npy", "images/"),
    named("COLMAP, binary", "COLMAP", "sparse/0/cameras.bin", "sparse/0/images.bin", "images/"),
    named("COLMAP, text", "COLMAP", "cameras.txt", "images.txt", "points3D.txt"),
    named("Middlebury", "Middlebury", "templeR_par.txt", "templeR_ang.txt"),
    named("NSVF", "NSVF", "intrinsics.txt", "bbox.txt", "pose/0_0000.txt", "rgb/"),
    named("DTU (cameras.npz)", "DTU|IDR|NeuS|cameras", "cameras.npz", "image/", "mask/"),
    named("Blender's own file", "blend|image set|cameras", "scene.blend"),
    named("a video", "image set|video", "clip.mp4"),
    area.works("a link to the set", fit_of("link"), _linked, makes=("out.h5",), needs=("posix",)),
    area.works("a slash at the end", fit_of("set/"), makes=("out.h5",)),
    area.works("a path with dots", fit_of("./set/../set/."), makes=("out.h5",)),
    odd("blanks in its name", " my set "),
    odd("letters of other scripts in its name", "集合-ü-🙂", needs=("posix",)),
    area.works(
        "a dash in front of its name, after --", ("fit", "--preset", "quick", "--steps", "3", "--resolution", "8",
        "--out", "out.h5", "--", "-set"), renamed("-set"), makes=("out.h5",)),
    odd("a name with a new line in it", "a\nb", needs=("posix",)),
    odd("a name that is a pattern", "[set]*", needs=("linux",)),
    odd("a name of half a character", "s\udcff", needs=("linux",)),
    area.either("images are links to a store outside", fit_of("set"),
                r"(leads out|outside).*(allow|--|copy)", _links_out,
                makes=("out.h5",), needs=("posix",)),
    area.either("the folder of images is a link to one outside", fit_of("set"), r"(leads out|outside).*(allow|--|copy)",
                _folder_links_out, makes=("out.h5",), needs=("posix",)),
    area.works("r.png and r.webp in one set: two pictures", EVALUATE, _two_suffixes, makes=PICTURES,
               check=two_pictures),
    area.works("left/r.png and right/r.png: two pictures", EVALUATE, _two_folders, makes=PICTURES, check=two_pictures),
    area.works("names with blanks and turned writing", EVALUATE, _many_names, makes=PICTURES, check=two_pictures,
               needs=("posix",)),
]  # fmt: skip
