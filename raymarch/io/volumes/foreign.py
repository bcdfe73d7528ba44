"""Files of other kinds, told by how they begin: what each is, and what makes a volume of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py

from raymarch.io.files.hdf5 import DAMAGE_ERRORS, FILE_KINDS, foreign_arrays
from raymarch.io.volumes.stored_values import unpack

HEAD_BYTES = 4096  # bytes that are looked at
NIBABEL_CURE = "i = nibabel.load({0!r}); nibabel.save(nibabel.Nifti1Image(i.get_fdata(), i.affine), 'a.nii.gz')"
ITK_CURE = "SimpleITK.WriteImage(SimpleITK.ReadImage({0!r}), 'a.nrrd')"
PICTURE_CURE = (
    "is a picture, want a volume; stack slices in Python, files = sorted(glob.glob('*{1}')):"
    " np.save('a.npy', np.stack([np.asarray(PIL.Image.open(f).convert('L')).T for f in files], -1))"
)
MESH_CURE = (
    "is a mesh, want a volume; fill it in Python: np.save('a.npy', trimesh.load({0!r},"
    " force='mesh').voxelized(PITCH).fill().matrix)"
)
GIFTI_CURE = (
    "fill a surface that is closed in Python: s = nibabel.load({0!r}).agg_data(('pointset', 'triangle'));"
    " np.save('a.npy', trimesh.Trimesh(*s).voxelized(PITCH).fill().matrix)"
)
PARAVIEW_CURE = "open it in ParaView, there Filters > Resample To Image, and save that as .vti"
FIJI_CURE = "open it in Fiji and save it as TIFF"
PACKERS = {
    b"\x1f\x8b": ("gzip", "gunzip -k {0}", "gunzip -c {0} > FILE", ".gz"),
    b"BZh": ("bzip2", "bunzip2 -k {0}", "bunzip2 -c {0} > FILE", ".bz2"),
    b"\xfd7zXZ\0": ("xz", "unxz -k {0}", "unxz -c {0} > FILE", ".xz"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -d {0}", "zstd -dc {0} > FILE", ".zst"),
}
BARE_DICOM = tuple(b"\2\0%c\0" % k for k in (0, 1, 2, 16)) + tuple(b"\x08\0%c\0" % k for k in (0, 1, 5, 8, 18, 22))
MAX_BARE_ELEMENT = 256  # bytes of a first element
# By how they begin; {0} is the file's name and {1} its suffix.
MAGIC_BYTES: tuple[tuple[bytes, str], ...] = (
    *((one, PICTURE_CURE) for one in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"\x76\x2f\x31\x01", b"#?RADIANCE")),
    (b"\0\0\0\x0cjP  ", PICTURE_CURE),
    (b"DDS v3", "is a packed PVM volume; unpack it by pvm2raw of the V3 tools and give shape and dtype to rm.load"),
    (b"CDF", "is NetCDF 3, want a volume; in Python: np.save('a.npy', scipy.io.netcdf_file({0!r}, mmap=False)"
             ".variables['NAME'][:].T)"),
    (b"MATLAB 5.0", "is a MATLAB file; in Python: np.save('a.npy', scipy.io.loadmat({0!r})['NAME'])"),
    (b"ply", MESH_CURE), (b"glTF", MESH_CURE), (b"solid ", MESH_CURE),
    (b"# vtk DataFile", "is a legacy file of VTK, want .vti; open it in ParaView and save it as .vti"),
    (b"MATRIX7", f"is ECAT, want NIfTI; in Python: {NIBABEL_CURE}"),
    (b"# === DATA DESCRIPTION FILE", f"is PAR/REC of Philips, want NIfTI; in Python: {NIBABEL_CURE}"),
    (b"ZISRAWFILE", f"is CZI of Zeiss; {FIJI_CURE}"), (b"\xda\xce\xbe\x0a", f"is ND2 of Nikon; {FIJI_CURE}"),
    (b"\x70\0\0\0", f"is LIF of Leica; {FIJI_CURE}"),
    (b"\0\0\0\x03", f"is DM3 of DigitalMicrograph; {FIJI_CURE}"),
    (b"\0\0\0\x04", f"is DM4 of DigitalMicrograph; {FIJI_CURE}"),
    (b"version https://git-lfs", "is a pointer of Git LFS, not the file itself; fetch it: git lfs pull"),
    (b"7z\xbc\xaf", "is a 7z archive; unpack it and name the volume in it"),
    (b"Rar!", "is a RAR archive; unpack it and name the volume in it"),
    (b"%PDF", "is a PDF, want a volume; check the path"),
    (b"SQLite", "is a database, want a volume; check the path"),
)  # fmt: skip


def describe_foreign(path: Path, text: bool = True) -> str | None:
    """What a file of another kind is, and what to do; None where that is not known.

    Args:
        path: of a file that no format claims by its content.
        text: whether tables of text are told too.

    Example:
        >>> _ = Path("mesh.ply").write_bytes(b"ply format ascii 1.0")
        >>> describe_foreign(Path("mesh.ply"))[:24]
        'is a mesh, want a volume'
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for know in (
        _describe_brain_format,
        describe_bare_dicom,
        _describe_packed,
        _archive,
        _describe_hdf5,
        _describe_vtk,
        _raw_behind_text,
        _beginning,
        _describe_reference,
    ):
        if (told := know(path, head)) is not None:
            return told
    return _table(path, head) if text else None


def _describe_brain_format(path: Path, head: bytes) -> str | None:
    if path.name.lower().endswith((".brik", ".brik.gz", ".brik.bz2")):
        return f"is values of AFNI, whose header is the .HEAD beside them; in Python: {NIBABEL_CURE.format(path.name)}"
    if b"<gifti" in head.lower():
        return f"is GIFTI, a surface or what lies on one, want a volume; {GIFTI_CURE.format(path.name)}"
    return None


def describe_bare_dicom(path: Path, head: bytes | None = None) -> str | None:
    """Of DICOM that lacks its first 132 bytes, as some archives keep it: what writes it with them; None of others."""
    if head is None:
        with path.open("rb") as file:
            head = file.read(8)
    explicit = head[4:6].isalpha()
    if head[:4] not in BARE_DICOM or not (explicit or int.from_bytes(head[4:8], "little") < MAX_BARE_ELEMENT):
        return None
    syntax = f"pydicom.uid.{'Explicit' if explicit else 'Implicit'}VRLittleEndian"
    told = "" if head[:1] == b"\2" else f"d.ensure_file_meta(); d.file_meta.TransferSyntaxUID = {syntax}; "
    return (
        f"is DICOM without its preamble; write all of its folder anew in Python, for f in glob.glob('{path.parent}/*'):"
        f" d = pydicom.dcmread(f, force=True); {told}d.save_as(f, enforce_file_format=True)"
    )


def _describe_packed(path: Path, head: bytes) -> str | None:
    if head.startswith(b"\x1f\x8b"):
        # FreeSurfer's packed volumes begin with version 1 as four bytes, most significant first.
        with path.open("rb") as file:
            try:
                inner = bytes(unpack(file.read, 4, "gzip", path))
            except ValueError:
                inner = b""
        if inner == b"\0\0\0\1":
            return f"is MGZ of FreeSurfer, want NIfTI; in Python: {NIBABEL_CURE.format(path.name)}"
    for begins, (name, plain, piped, suffix) in PACKERS.items():
        if head.startswith(begins):
            if path.name.lower().endswith((".tar" + suffix, ".tgz")):
                return f"is an archive packed by {name}; unpack it: tar -xf {path.name}"
            how = (plain if path.name.lower().endswith(suffix) else piped).format(path.name)
            return f"is packed by {name}, and what is in it is no map nor NIfTI; unpack it: {how}"
    return None


def _archive(path: Path, head: bytes) -> str | None:
    if head[257:262] == b"ustar":
        return f"is an archive; unpack it: tar -xf {path.name}"
    if head.startswith(b"PK\3\4"):
        if path.suffix.lower() == ".npz":
            return None  # whose reader tells what is wrong with it
        if b"data.pkl" in head or b"/version" in head[:200]:
            return (
                "is a file of torch.save, which raymarch does not open as it may run code; in Python:"
                f" np.save('a.npy', torch.load({path.name!r})), of a tensor, or of one in what it gives"
            )
        return f"is a ZIP archive, want a volume; unpack it: python -m zipfile -e {path.name} FOLDER"
    if re.match(rb"\x80[\2-\5][\x95}\])c]", head):
        return (
            "is a pickle of Python, which raymarch does not open as it may run code; if you trust it:"
            f" np.save('a.npy', np.load({path.name!r}, allow_pickle=True))"
        )
    return None


def _describe_hdf5(path: Path, head: bytes) -> str | None:
    """Of an HDF5 file of another program its arrays, and the call that takes the largest."""
    if not h5py.is_hdf5(path):
        return None
    try:
        with h5py.File(path, "r") as file:
            said = file.attrs.get("format")
            said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            if isinstance(said, str) and said in FILE_KINDS:
                return None
            if "minc-2.0" in file:
                return f"is MINC, want NIfTI; in Python: {NIBABEL_CURE.format(path.name)}"
            return f"is HDF5 of another program, no raymarch-volume file; {foreign_arrays(file, path)}"
    except DAMAGE_ERRORS:
        return None


def _describe_vtk(path: Path, head: bytes) -> str | None:
    kind = re.search(rb'<VTKFile\b[^>]*\stype\s*=\s*"(\w+)"', head)
    if kind is None or kind.group(1) == b"ImageData":
        return None
    name = kind.group(1).decode()
    how = "open it in ParaView and save it as .vti" if name == "PImageData" else PARAVIEW_CURE
    return f"is {name} of VTK, want ImageData (.vti); {how}"


def _raw_behind_text(path: Path, head: bytes) -> str | None:
    """Of formats that are raw values behind a text: the call that reads them."""
    for name, know in RAW_READERS.items():
        if (found := know(path, head)) is not None:
            shape, dtype, offset, more = found
            return f"is {name}; rm.load({path.name!r}, shape={shape}, dtype={dtype!r}, offset={offset}{more}) reads it"
    return None


RawLayout = tuple[tuple[int, ...], str, int, str]


def _amira(path: Path, head: bytes) -> RawLayout | None:
    begins = re.match(rb"# (?:AmiraMesh|Avizo)(?: 3D)? BINARY(-LITTLE-ENDIAN)?", head)
    size = re.search(rb"define Lattice (\d+) (\d+) (\d+)", head)
    values = re.search(rb"Lattice \{ (byte|short|ushort|int|float|double)(?:\[1\])? \w+ \} =? ?@1\s", head)
    at = head.find(b"\n@1\n")
    if not (begins and size and values and at >= 0):
        return None
    order = "<" if begins.group(1) else ">"
    kinds = {b"byte": "u1", b"short": "i2", b"ushort": "u2", b"int": "i4", b"float": "f4", b"double": "f8"}
    x, y, z = map(int, size.groups())
    return (x, y, z), f"{order}{kinds[values.group(1)]}", at + 4, ""


def _pvm(path: Path, head: bytes) -> RawLayout | None:
    found = re.match(rb"PVM[23]?\n(\d+) (\d+) (\d+)\n(?:(\S+) (\S+) (\S+)\n)?([12])\n", head)
    if not found:
        return None
    x, y, z, size = (int(found.group(k)) for k in (1, 2, 3, 7))
    more = f", spacing=({b', '.join(found.groups()[3:6]).decode()})" if found.group(4) else ""
    return (x, y, z), "u1" if size == 1 else ">u2", found.end(), more


def _fits(path: Path, head: bytes) -> RawLayout | None:
    if not head.startswith(b"SIMPLE  ="):
        return None
    with path.open("rb") as file:
        head = file.read(1 << 20)
    cards = [head[at : at + 80] for at in range(0, len(head) - 79, 80)]
    end = next((k for k, card in enumerate(cards) if card[:8] == b"END     "), None)
    told = {card[:8].strip(): card[10:].split(b"/")[0].strip() for card in cards[:end]}
    kinds = {b"8": "u1", b"16": ">i2", b"32": ">i4", b"64": ">i8", b"-32": ">f4", b"-64": ">f8"}
    kind = kinds.get(told.get(b"BITPIX", b""))
    try:
        sizes = tuple(int(told[b"NAXIS%d" % (k + 1)]) for k in range(int(told[b"NAXIS"])))
    except (KeyError, ValueError):
        return None
    while len(sizes) > 3 and sizes[-1] == 1:
        sizes = sizes[:-1]
    if end is None or kind is None or len(sizes) != 3:
        return None
    return sizes, kind, -(-(end + 1) * 80 // 2880) * 2880, ""


RAW_READERS: dict[str, Callable[[Path, bytes], RawLayout | None]] = {
    "AmiraMesh, raw values behind a text": _amira,
    "PVM, raw values behind a text": _pvm,
    "FITS, raw values behind a text": _fits,
}


def _beginning(path: Path, head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return PICTURE_CURE.format(path.name, path.suffix)
    if head[4:8] == b"ftyp":
        return "is a video or a picture of such a file, want a volume; take its pictures out: ffmpeg -i IN %04d.png"
    if re.match(rb"# (AmiraMesh|Avizo)", head):
        return "is AmiraMesh that is packed or of several arrays; save it uncompressed in Amira, or as .nrrd"
    if head[:4] == b"\0\0\0\1" and path.suffix.lower() == ".mgh":
        return f"is MGH of FreeSurfer, want NIfTI; in Python: {NIBABEL_CURE.format(path.name)}"
    if head[252:256] in (b"\x2a\xe3\x89\xb8", b"\xef\xff\xe9\xb0"):
        return f"is GIPL, want NRRD; in Python: {ITK_CURE.format(path.name)}"
    for begins, told in MAGIC_BYTES:
        if head.startswith(begins):
            return told.format(path.name, path.suffix)
    return None


def _describe_reference(path: Path, head: bytes) -> str | None:
    """Of pages, and of texts that are about a volume in another file."""
    start = head.lstrip(b"\xef\xbb\xbf \r\n\t")[:200].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "is a page of the web and not the file itself; download it again, by its own link"
    if re.match(rb"\s*type\s*=\s*string-attribute", head):
        return f"is a header of AFNI, want NIfTI; in Python: {NIBABEL_CURE.format(path.name)}"
    if path.suffix.lower() in (".vgi", ".vol", ".pcr") or start.startswith(b"{volume"):
        return (
            "is of VGStudio, raw values beside a text (.vgi) that says their size and type; rm.load(NAME.vol,"
            " shape=(x, y, z), dtype='<u2') reads them"
        )
    return None


def _table(path: Path, head: bytes) -> str | None:
    """Of a table of numbers as text the call that makes a volume of it."""
    try:
        lines = head.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None
    lines = [line for line in lines[:-1] or lines if line.strip() and not line.startswith("#")]
    mark = next((one for one in (",", ";", "\t") if lines and one in lines[-1]), None)
    try:
        count = len([float(word) for word in (lines[-1].split(mark) if lines else [])])
        for line in lines[1:-1]:
            _ = [float(word) for word in line.split(mark)]
    except ValueError:
        return None
    if not count:
        return None
    skip = 0 if re.fullmatch(r"[-+.\d\seE,;]*", lines[0]) else 1
    how = (f", delimiter={mark!r}" if mark else "") + (f", skiprows={skip}" if skip else "")
    return (
        f"is a table of text, want a volume; in Python: np.save('a.npy', np.loadtxt({path.name!r}{how})"
        ".reshape(x, y, z)), in the order of its numbers"
    )
