"""Image header: size, channels and orientation of a file without decoding it, and what a file is that is no image."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from PIL import Image, UnidentifiedImageError

from raymarch.errors import RaymarchError, one_line
from raymarch.io.images.profile import is_foreign

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
MAX_PIXELS = 1 << 26
ALPHA_MODES = ("RGBA", "LA", "PA", "RGBa", "La")
OPAQUE_MODES = ("RGB", "L", "P", "1", "CMYK", "YCbCr")
DEEP_MODES = ("I", "I;16", "I;16B", "I;16L")
GREY_MODES = ("1", "L", "LA", "La", *DEEP_MODES)
WIDTH_TAG, HEIGHT_TAG, ORIENTATION_TAG = 0x0100, 0x0101, 0x0112  # tags of TIFF and EXIF; orientation 1 is upright
SIDEWAYS_ORIENTATIONS = (5, 6, 7, 8)  # orientations whose width is the upright image's height
RAW_SUFFIXES = (
    ".dng",
    ".cr2",
    ".cr3",
    ".crw",
    ".nef",
    ".nrw",
    ".arw",
    ".raf",
    ".rw2",
    ".orf",
    ".pef",
    ".srw",
    ".x3f",
    ".3fr",
)
OTHER_SUFFIXES = (  # of pictures that are not read: a set may name them
    *(
        ".exr",
        ".hdr",
        ".pic",
        ".jp2",
        ".j2k",
        ".jpx",
        ".jxl",
        ".avif",
        ".heic",
        ".heif",
        ".gif",
        ".psd",
        ".psb",
        ".svg",
    ),
    *(".pdf", ".tga", ".dds", ".ppm", ".pgm", ".pnm", ".pfm", ".pcx", ".ico", ".xcf", ".fits", ".mp4", ".mov"),
    *RAW_SUFFIXES,
)
# tag of a TIFF that holds a sensor's raw values, and a small picture that is not the photograph
DNG_VERSION_TAG = 0xC612
WRITE, DEVELOP, FRAMES, ARRAY = "write", "develop", "frames", "array"  # kinds of cures
FOREIGN_FILES = [  # what files that are no image of ours begin with, from which byte on, what they are and what to do
    (0, b"version https://git-lfs", "a pointer of Git LFS", "fetch the image with git lfs pull"),
    (0, b"<!doctype html", "a web page", "download the image again"),
    (0, b"<html", "a web page", "download the image again"),
    *[(4, b"ftyp" + kind, "a HEIC image", WRITE) for kind in (b"hei", b"hev", b"mif1", b"msf1")],
    (4, b"ftypavi", "an AVIF image", WRITE),
    (4, b"ftypcrx", "a camera's raw file", DEVELOP),
    (4, b"ftyp", "a video", FRAMES),
    (0, b"\x1a\x45\xdf\xa3", "a video", FRAMES),
    (8, b"avi list", "a video", FRAMES),
    (0, b"\x76\x2f\x31\x01", "an OpenEXR image", WRITE),
    (0, b"#?r", "a Radiance image", WRITE),
    (0, b"gif8", "a GIF image", WRITE),
    (0, b"\x00\x00\x00\x0cjp  ", "a JPEG 2000 image", WRITE),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 image", WRITE),
    (0, b"\x00\x00\x00\x0cjxl ", "a JPEG XL image", WRITE),
    (0, b"\xff\x0a", "a JPEG XL image", WRITE),
    (0, b"8bps", "a Photoshop file", WRITE),
    (0, b"gimp xcf", "a GIMP file", WRITE),
    (0, b"dds ", "a DirectDraw image", WRITE),
    *[(0, b"p" + digit + b"\n", "a Netpbm image", WRITE) for digit in (b"1", b"2", b"3", b"4", b"5", b"6", b"7")],
    (0, b"pf\n", "a floating-point image (PFM)", WRITE),
    (0, b"simple  =", "a FITS image", WRITE),
    (0, b"fujifilmccd-raw", "a camera's raw file", DEVELOP),
    (0, b"iiu\0", "a camera's raw file", DEVELOP),
    (0, b"iiro", "a camera's raw file", DEVELOP),
    (0, b"iirs", "a camera's raw file", DEVELOP),
    (0, b"fovb", "a camera's raw file", DEVELOP),
    (8, b"cr\x02\0", "a camera's raw file", DEVELOP),
    (0, b"\x93numpy", "a NumPy array", ARRAY),
    (0, b"\x89hdf", "an HDF5 file", ARRAY),
    (0, b"pk\x03\x04", "a ZIP archive", "unpack it"),
    (0, b"%pdf", "a PDF", WRITE),
    (0, b"<svg", "an SVG drawing", WRITE),
    (0, b"<?xml", "an XML text, such as an SVG drawing", WRITE),
]
DEPTH_TRAIT = "have 16 bit, reduced to 8"
TURNED_TRAIT = (
    "are turned upright as their EXIF says; cameras of the images as they were before, as those of COLMAP,"
    " instant-ngp and nerfstudio are, with them"
)
INK_TRAIT = "are CMYK, whose colours are approximate"
MOVING_TRAIT = "have several frames, of which the first is taken"
PROFILE_TRAIT = "have a colour profile other than sRGB's, and are brought to sRGB by it"
GREY_TRAIT = "are grey where the others have colours"
TRAITS = (DEPTH_TRAIT, TURNED_TRAIT, INK_TRAIT, MOVING_TRAIT, PROFILE_TRAIT, GREY_TRAIT)


class Header(NamedTuple):
    """Image header: size once upright, channels once decoded, EXIF's orientation before, and what to know of it."""

    width: int
    height: int
    channels: int
    orientation: int
    traits: tuple[str, ...]


def open_image(path: Path) -> Image.Image:
    """Image that is opened but not decoded, of a format of ours; else RaymarchError that says what the file is."""
    try:
        image = Image.open(path, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RaymarchError(
            f"{path}: image is too large ({one_line(error)}), want at most {MAX_PIXELS}; shrink it"
        ) from error
    except PermissionError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    # Pillow's readers raise anything from struct.error to AttributeError for damaged files
    except Exception as error:
        why = "" if isinstance(error, UnidentifiedImageError) else f" ({one_line(error)})"  # which repeats the path
        reason = _foreign(path) or f"is no readable image{why}; want {', '.join(FORMATS)}"
        raise RaymarchError(f"{path}: {reason}") from error
    raw = image.format == "TIFF" and (path.suffix.lower() in RAW_SUFFIXES or DNG_VERSION_TAG in image.tag_v2)  # type: ignore[attr-defined]
    if raw:
        image.close()
        raise RaymarchError(f"{path}: is no readable image but a camera's raw file; {_cure(DEVELOP, path)}")
    return image


def _cure(kind: str, path: Path) -> str:
    """What to do about a picture of another format: a PNG of its name beside it is read in its place."""
    beside = "in its place" if path.suffix.lower() in SUFFIXES else "of its name beside it, which is then read"
    if kind == WRITE:
        suffix = path.suffix.lower() or ".exr"
        tool = "" if suffix in SUFFIXES else f" (ImageMagick: magick mogrify -format png *{suffix})"
        return f"convert it to a PNG of 8 or 16 bit {beside}{tool}"
    if kind == ARRAY:
        return (
            f"write its values as a PNG {beside}: PIL.Image.fromarray(values.astype('uint8')).save(NAME); or, where"
            " they are no colours, name them in a list 'channels' at the top of a transforms.json (docs/channels.md)"
        )
    if kind == DEVELOP:
        return f"develop it to a PNG or JPEG {beside}, all photographs alike"
    return "take its frames out as pictures (ffmpeg -i VIDEO %04d.png), a camera for each" if kind == FRAMES else kind


def _foreign(path: Path) -> str:
    """What a file is that is no image of ours, and what to do, if its first bytes tell."""
    try:
        with path.open("rb") as file:
            start = file.read(64).lower()
    except OSError:
        return ""
    if not start:
        return "is no readable image: it is empty (0 bytes); export it again or take its frame out"
    for at, magic, what, cure in FOREIGN_FILES:
        if start[at:].startswith(magic.lower()):
            return f"is no readable image but {what}; {_cure(cure, path)}"
    suffix = path.suffix.lower()
    if suffix in OTHER_SUFFIXES:
        kind = DEVELOP if suffix in RAW_SUFFIXES else FRAMES if suffix in (".mp4", ".mov") else WRITE
        return f"is no readable image, {suffix} is not read; {_cure(kind, path)}"
    return ""


def read_header(path: Path) -> Header:
    """Header of an image file; RaymarchError for one over 64 megapixels, or of a kind that cannot be read."""
    with open_image(path) as image:
        width, height = _stored_size(image)
        if width * height > MAX_PIXELS:
            raise RaymarchError(
                f"{path}: image is too large ({width} x {height} pixels), want at most {MAX_PIXELS}; shrink it"
            )
        if image.mode not in (*ALPHA_MODES, *OPAQUE_MODES, *DEEP_MODES):
            raise RaymarchError(f"{path}: image has mode {image.mode}, want 8 bit RGB or RGBA; convert it")
        deep = image.mode in DEEP_MODES or any(";16" in str(tile[3]) for tile in image.tile)  # type: ignore[attr-defined]
        moving = getattr(image, "is_animated", False) and image.format != "MPO"  # a photo with its preview is still
        orientation = _orientation(image)
        has = {DEPTH_TRAIT: deep, TURNED_TRAIT: orientation != 1, INK_TRAIT: image.mode == "CMYK", MOVING_TRAIT: moving}
        has |= {PROFILE_TRAIT: is_foreign(image), GREY_TRAIT: image.mode in GREY_MODES}
        if orientation in SIDEWAYS_ORIENTATIONS:
            width, height = height, width
        channels = 4 if has_alpha(image) else 3
        return Header(width, height, channels, orientation, tuple(trait for trait in TRAITS if has[trait]))


def is_turned_by_pillow(image: Image.Image) -> bool:
    """Whether Pillow applies the orientation itself, once it decodes."""
    return image.format == "TIFF"


def open_unmapped(image: Image.Image) -> Image.Image:
    """Image that Pillow reads and does not map: it maps a TIFF of one piece by the size that this has once upright, so
    that the rows of one that lies sideways are cut in the wrong places."""
    image.filename = ""  # type: ignore[attr-defined]  # as of a stream, which cannot be mapped
    return image


def _stored_size(image: Image.Image) -> tuple[int, int]:
    """Width and height before anything is turned: from Pillow 11 on that of a TIFF is of the upright image."""
    if not is_turned_by_pillow(image):
        return image.size
    width, height = (int(image.tag_v2[tag]) for tag in (WIDTH_TAG, HEIGHT_TAG))  # type: ignore[attr-defined]
    return width, height


def _orientation(image: Image.Image) -> int:
    """Orientation by EXIF, 1 to 8."""
    if image.format != "TIFF" and "exif" not in image.info:  # else Pillow decodes the image to look for it
        return 1
    try:
        said = image.getexif().get(ORIENTATION_TAG, 1)
    except Exception:  # as in open_image; what cannot be read says nothing
        return 1
    return said if said in range(2, 9) else 1


def has_alpha(image: Image.Image) -> bool:
    """Presence of alpha, a palette's or a transparent colour included."""
    return image.mode in ALPHA_MODES or ("transparency" in image.info and image.mode not in DEEP_MODES)
