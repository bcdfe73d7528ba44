"""The image files of a set: damaged, enormous, of other kinds, or showing nothing."""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

from hostile_cases.case import FIT, Area
from hostile_cases.transforms import TRAIN

area = Area("images")
OUT = ("out.h5",)


def painted(paint, only: int | None = None):
    """Set up: each image's RGBA array (or one's) as the function returns it, as PNG."""

    def set_up(folder: Path) -> None:
        for i in range(12):
            if only in (None, i):
                path = folder / f"set/train/r_{i}.png"
                Image.fromarray(np.asarray(paint(np.array(Image.open(path))), np.uint8)).save(path)

    return set_up


def put(make, name: str = "r_3.png"):
    """Set up: one file of the training images with these bytes."""
    return lambda folder: (folder / "set/train" / name).write_bytes(make() if callable(make) else make)


def saved(kind: str, mode: str, only: int | None = None, suffix: str = "png", **how):
    """Set up: images converted to a mode and saved in a format; frames name the new files."""

    def set_up(folder: Path) -> None:
        path = folder / TRAIN
        document = json.loads(path.read_text())
        for i, frame in enumerate(document["frames"]):
            if only in (None, i):
                old = folder / f"set/train/r_{i}.png"
                image = Image.open(old).convert("RGBA")
                old.unlink()
                image.convert(mode).save(old.with_suffix("." + suffix), format=kind, **how)
                frame["file_path"] = f"train/r_{i}.{suffix}"
        path.write_text(json.dumps(document))

    return set_up


def _png(width: int, height: int, *chunks: tuple[bytes, bytes], bits: int = 1) -> bytes:
    """A PNG that declares a size, with these chunks and no more of its image than they hold."""
    head = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    parts = [(b"IHDR", head), *chunks, (b"IEND", b"")]
    packed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _text_bomb() -> bytes:
    return _png(24, 24, (b"zTXt", b"a\0\0" + zlib.compress(bytes(200 << 20))), (b"IDAT", zlib.compress(bytes(24 * 4))))


def _profile_bomb() -> bytes:
    return _png(24, 24, (b"iCCP", b"a\0\0" + zlib.compress(bytes(200 << 20))), (b"IDAT", zlib.compress(bytes(24 * 4))))


def _huge(side: int):
    def set_up(folder: Path) -> None:
        rows = zlib.compress(bytes(side * (side * 4 + 1)), 1)
        head = struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)
        parts = [(b"IHDR", head), (b"IDAT", rows), (b"IEND", b"")]
        packed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
        png = b"\x89PNG\r\n\x1a\n" + b"".join(packed)
        for i in range(12):
            (folder / f"set/train/r_{i}.png").write_bytes(png)

    return set_up


def _cut(share: float):
    def set_up(folder: Path) -> None:
        path = folder / "set/train/r_3.png"
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    return set_up


def _flipped(folder: Path) -> None:
    path = folder / "set/train/r_3.png"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x55
    path.write_bytes(raw)


def _resized(width: int, height: int, only: int | None = None):
    def set_up(folder: Path) -> None:
        for i in range(12):
            if only in (None, i):
                path = folder / f"set/train/r_{i}.png"
                Image.open(path).resize((width, height)).save(path)

    return set_up


def _removed(*numbers: int):
    return lambda folder: [(folder / f"set/train/r_{i}.png").unlink() for i in numbers]


def _as(make):
    def set_up(folder: Path) -> None:
        path = folder / "set/train/r_3.png"
        path.unlink()
        make(path)

    return set_up


def _animated() -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGBA", (24, 24), (i, 0, 0, 255)) for i in range(3)]
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    return file.getvalue()


def _gif() -> bytes:
    file = io.BytesIO()
    Image.new("P", (24, 24)).save(file, "GIF")
    return file.getvalue()


def _floats(path: Path) -> None:
    Image.fromarray(np.zeros((24, 24), np.float32)).save(path, format="TIFF")


def _sixteen(folder: Path) -> None:
    for i in range(12):
        path = folder / f"set/train/r_{i}.png"
        Image.fromarray(np.array(Image.open(path).convert("L")).astype(np.uint16) * 257).save(path)


def _texts(path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    for i in range(20_000):
        info.add_text(f"key{i}", "x" * 100)
    Image.new("RGBA", (24, 24)).save(path, pnginfo=info)


def refused(name: str, set_up, says: str = "r_3", **more):
    """A fit that must name the image."""
    return area.refused(name, FIT, says, set_up, **more)


def either(name: str, set_up, says: str, **more):
    """A fit that must work, or name the cause."""
    return area.either(name, FIT, says, set_up, makes=OUT, **more)


def works(name: str, set_up, **more):
    """A fit that must work."""
    return area.works(name, FIT, set_up, makes=OUT, **more)


BLACK, WHITE = [0, 0, 0], [255, 255, 255]

CASES = [
    refused("a file of no bytes", put(b"")),
    refused("a text called .png", put(b"not an image\n")),
    refused("a web page called .png", put(b"<html>404</html>")),
    refused("cut in the middle", _cut(0.5)),
    refused("cut in its header", _cut(0.02)),
    refused("one byte altered", _flipped),
    refused("30,000 x 30,000 pixels declared", put(lambda: _png(30_000, 30_000)), "r_3.*(large|30000)", seconds=2),
    refused("2^31 x 2^31 pixels declared", put(lambda: _png(2**31 - 1, 2**31 - 1)), seconds=2),
    refused("0 x 0 pixels declared", put(lambda: _png(0, 0)), seconds=2),
    refused("a text chunk of 200 MB once unpacked", put(_text_bomb), "", seconds=2),
    refused("a colour profile of 200 MB once unpacked", put(_profile_bomb), "", seconds=2),
    refused("twelve images of 8000 x 8000", _huge(8000), "pixels|fewer|memory|bytes|smaller", seconds=4),
    works("20,000 texts in one image", _as(_texts)),
    refused("GIF called .png", put(_gif)),
    either("a folder called r_3.png", _as(Path.mkdir), "r_3|missing"),
    either("a pipe that nobody fills", _as(lambda p: os.mkfifo(p)), "r_3|missing", needs=("posix",)),
    refused("a link to /dev/zero", _as(lambda p: p.symlink_to("/dev/zero")), "r_3|frame 3", needs=("posix",)),
    refused("a link to /etc/passwd", _as(lambda p: p.symlink_to("/etc/passwd")), "r_3|frame 3", needs=("posix",)),
    either("a link that leads nowhere", _as(lambda p: p.symlink_to("nowhere.png")), "r_3|frame 3", needs=("posix",)),
    either("a link to itself", _as(lambda p: p.symlink_to("r_3.png")), "r_3|frame 3", needs=("posix",)),
    works("a link to another image of the set", _as(lambda p: p.symlink_to("r_9.png")), needs=("posix",)),
    works("one of twelve is missing, and named", _removed(3), says="note: .*1 of 12.*r_3"),
    either("eleven of twelve are missing", _removed(*range(1, 12)), "1 view|one view"),
    refused("all are missing", _removed(*range(12)), "12 images"),
    works("one of another size", _resized(48, 48, 3)),
    works("one turned to portrait", _resized(18, 24, 3)),
    refused("all of 1 x 1 pixel", _resized(1, 1), "1 x 1|pixel|small"),
    either("all of 2 x 2 pixels", _resized(2, 2), "2 x 2|pixel|small"),
    either("all of 96 x 1 pixels", _resized(96, 1), "96 x 1|pixel|small"),
    refused("one without alpha among those with", saved("PNG", "RGB", 3), "r_3.*alpha"),
    works("all without alpha", saved("PNG", "RGB")),
    works("grey images", saved("PNG", "L")),
    works("grey images with alpha", saved("PNG", "LA")),
    works("palettes", saved("PNG", "P")),
    works("black and white of 1 bit", saved("PNG", "1")),
    works("JPEG", saved("JPEG", "RGB", suffix="jpg")),
    works("JPEG in CMYK", saved("JPEG", "CMYK", suffix="jpg")),
    works("JPEG called .png", saved("JPEG", "RGB")),
    works("WebP", saved("WEBP", "RGBA", suffix="webp")),
    works("TIFF", saved("TIFF", "RGBA", suffix="tif")),
    works("names in capitals, .PNG", saved("PNG", "RGBA", suffix="PNG")),
    works("16 bit, and said so", _sixteen, says="16 bit"),
    refused("one TIFF of floats called .png", _as(_floats), "r_3"),
    either("an animation", put(_animated), "r_3"),
    refused("fully transparent", painted(lambda a: 0 * a), "transparent|alpha|empty"),
    works("two of twelve fully transparent: a note says so", lambda f: [painted(lambda a: 0 * a, i)(f) for i in (2, 5)],
          says="note: .*(2 of 12|r_2|frame 2)"),
    either("opaque everywhere", painted(lambda a: np.dstack([a[..., :3], 0 * a[..., 3:] + 255])), "alpha|opaque|box"),
    either("noise", painted(lambda a: np.random.default_rng(0).integers(0, 256, a.shape)), "alpha|agree|transparent"),
    refused("white on white, no alpha", painted(lambda a: 0 * a[..., :3] + 255), "white|one colour|nothing"),
    either("all black, no alpha", painted(lambda a: 0 * a[..., :3]), "black|one colour|background|nothing"),
    either("all identical", painted(lambda a: np.dstack([np.full((24, 24, 3), 90), 255 * np.eye(24)])),
           "alike|agree|same|identical|transparent"),
    either("alpha upside down", painted(lambda a: np.dstack([a[..., :3], 255 - a[..., 3:]])), "alpha|agree"),
]  # fmt: skip
