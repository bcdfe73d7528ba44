"""Law: who makes a mistake with a volume's file and then does what the message says has a volume.

Each of `CURES` makes a file, and names a piece of the message as it is to be: code of Python, a line of a shell, or
what is to be done by hand. The test sees the message, does just that, and loads what comes of it.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import json
import lzma
import pickle
import shutil
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import PIL.Image
import pytest
from skips import require_extra

import raymarch as rm

nibabel, mrcfile = (require_extra(name, "formats") for name in ("nibabel", "mrcfile"))
trimesh, nrrd = (require_extra(name, "formats") for name in ("trimesh", "nrrd"))
pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
VALUES = np.random.default_rng(0).integers(0, 99, (9, 7, 5)).astype(np.uint8)
RAW = VALUES.tobytes(order="F")
NRRD = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 9 7 5\nencoding: raw\n"


@dataclass(frozen=True)
class Cure:
    """A mistake, and the message that mends it.

    Attributes:
        name: of the file.
        make: `make(path)`, writes it.
        said: what its message has.
        code: code of Python in the message that is run as it stands; words of `fill` are replaced first.
        shell: line of a shell in the message that is run as it stands.
        by_hand: what is done in the folder where the message asks for something else, given the path.
        fill: what stands for a word of the message, such as NAME.
        loads: the file that is loaded then, or None if `code` is an expression that gives the volume.
        how: what `rm.load` is given, first and then.
        then: what it is given only then.
        values: what the volume holds; None where only that there is one counts.
    """

    name: str
    make: Callable[[Path], object]
    said: str = ""
    code: str = ""
    shell: str = ""
    by_hand: Callable[[Path], object] | None = None
    fill: dict = field(default_factory=dict)
    loads: str | None = "a.npy"
    how: dict = field(default_factory=dict)
    then: dict = field(default_factory=dict)
    values: np.ndarray | None = field(default_factory=lambda: VALUES)


def saved(**arrays):
    return lambda path: np.savez(path, **arrays)


def hdf5(**arrays):
    def make(path):
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name.replace("__", "/")] = array

    return make


def nifti(values=VALUES, **fields):
    def make(path):
        image = nibabel.Nifti1Image(values, np.eye(4))
        for key, value in fields.items():
            image.header[key] = value
        nibabel.save(image, path)

    return make


def octets(data):
    return lambda path: path.write_bytes(data)


def text(words):
    return lambda path: path.write_text(words)


def tarred(path):
    rm.save(rm.ScalarVolume(VALUES), path.with_name("in.nrrd"))
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        archive.add(path.with_name("in.nrrd"), "in.nrrd")
    path.with_name("in.nrrd").unlink()


def zipped(path):
    rm.save(rm.ScalarVolume(VALUES), path.with_name("in.nrrd"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(path.with_name("in.nrrd"), "in.nrrd")
    path.with_name("in.nrrd").unlink()


def packed(pack):
    def make(path):
        rm.save(rm.ScalarVolume(VALUES), path.with_name("b.vti"))
        path.write_bytes(pack(path.with_name("b.vti").read_bytes()))
        path.with_name("b.vti").unlink()

    return make


def fits(path):
    cards = [
        "SIMPLE  =                    T",
        "BITPIX  =                    8 / bytes",
        "NAXIS   =                    3",
    ]
    cards += [f"NAXIS{k + 1}  = {n:20}" for k, n in enumerate(VALUES.shape)] + ["END"]
    head = "".join(card.ljust(80) for card in cards)
    path.write_bytes(head.ljust(2880).encode() + RAW.ljust(2880, b"\0"))


def amira(path):
    head = '# AmiraMesh BINARY-LITTLE-ENDIAN 2.1\n\ndefine Lattice 9 7 5\n\nParameters { CoordType "uniform" }\n\n'
    path.write_bytes(f"{head}Lattice {{ byte Data }} @1\n\n# Data section follows\n@1\n".encode() + RAW)


def netcdf(path):
    scipy = require_extra("scipy.io", "formats")
    with scipy.netcdf_file(path, "w") as file:
        for name, n in zip("zyx", VALUES.T.shape, strict=True):
            file.createDimension(name, n)
        file.createVariable("rho", "i2", ("z", "y", "x"))[:] = VALUES.T


def mat(path):
    require_extra("scipy.io", "formats").savemat(path, {"scan": VALUES})


def torch_file(path):
    torch = require_extra("torch", "torch")
    torch.save(torch.from_numpy(VALUES), path)


def picture(path):
    for k in range(5):
        PIL.Image.fromarray(VALUES[:, :, k].T).save(path.with_name(f"s{k}{path.suffix}"))
    (path.parent / f"s0{path.suffix}").rename(path)


def complex_map(path):
    with mrcfile.new(path, VALUES.T.astype("c8")) as file:
        file.set_volume()


def structured(path):
    values = np.zeros(VALUES.shape, [("density", "u1"), ("label", "i4")])
    values["density"] = VALUES
    np.save(path, values)


def objects(path):
    values = np.empty(9, object)
    values[:] = [VALUES[k].tolist() for k in range(9)]
    np.save(path, values, allow_pickle=True)


def elsewhere(path):
    (path.parent / "sub").mkdir()
    (path.parent / "sub" / "v.raw").write_bytes(RAW)
    path.write_text(NRRD + "data file: ../scans/v.raw\n")


def take(path):
    shutil.move(path.parent / "sub" / "v.raw", path.parent / "v.raw")


def replaced(old, new):
    return lambda path: path.write_bytes(path.read_bytes().replace(old, new))


STACK = (
    "files = sorted(glob.glob('*.{}')): np.save('a.npy', np.stack([np.asarray(PIL.Image.open(f).convert('L')).T for f"
    " in files], -1))"
)
FOUR = np.stack([VALUES, VALUES], -1)
CURES = [
    # NumPy.
    Cure(
        "b.npy",
        structured,
        "holds values of the fields density, label",
        "np.save('numbers.npy', np.load('b.npy')['density'])",
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        objects,
        "holds objects of Python",
        "np.save('numbers.npy', np.array(np.load('b.npy', allow_pickle=True).tolist(), float))",
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, VALUES + 0j),
        "holds complex128",
        "np.save('numbers.npy', np.abs(np.load('b.npy')))",
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, VALUES.astype(np.longdouble)),
        "holds float128",
        "np.save('numbers.npy', np.load('b.npy').astype(np.float64))",
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, VALUES.astype("m8[s]")),
        "holds timedelta64[s]",
        "np.save('numbers.npy', np.load('b.npy').astype(np.float64))",
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, VALUES.ravel()),
        "has shape (315,)",
        "np.save('numbers.npy', np.load('b.npy').reshape(x, y, z))",
        fill={"x, y, z": "9, 7, 5"},
        loads="numbers.npy",
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, np.moveaxis(FOUR, -1, 0)),
        "the channels seem to be first",
        "np.save('numbers.npy', np.moveaxis(np.load('b.npy'), 0, -1))",
        loads="numbers.npy",
        then={"channel": 1},
    ),
    Cure(
        "b.npy",
        lambda path: np.save(path, FOUR),
        "has 2 channels along axis 3, want one volume; choose one by channel=0",
        loads="b.npy",
        then={"channel": 0},
    ),
    Cure(
        "b.npz",
        saved(left=VALUES, right=VALUES),
        "has left, right, want just one",
        "np.save('numbers.npy', np.load('b.npz')['left'])",
        loads="numbers.npy",
    ),
    Cure(
        "b.npz",
        saved(scan=VALUES + 0j),
        "holds complex128",
        "np.save('numbers.npy', np.abs(np.load('b.npz')['scan']))",
        loads="numbers.npy",
    ),
    Cure(
        "b.npz",
        saved(scan=VALUES.ravel()),
        "has scan, want just one of three axes",
        "np.save('numbers.npy', np.load('b.npz')['scan'].reshape(x, y, z))",
        fill={"x, y, z": "9, 7, 5"},
        loads="numbers.npy",
    ),
    # Raw values.
    Cure(
        "b.raw",
        octets(RAW),
        "give shape and dtype of raw values",
        loads="b.raw",
        then={"shape": (9, 7, 5), "dtype": "u1"},
    ),
    Cure(
        "b.raw",
        octets(b"head" + RAW),
        "say by offset how many bytes come before them",
        how={"shape": (9, 7, 5), "dtype": "u1"},
        then={"offset": 4},
        loads="b.raw",
    ),
    Cure(
        "b.raw",
        octets(RAW),
        "(uint8 would fit)",
        how={"shape": (9, 7, 5), "dtype": "u2"},
        then={"dtype": "uint8"},
        loads="b.raw",
    ),
    # HDF5 of other programs.
    Cure(
        "b.h5",
        hdf5(exported_data=np.stack([VALUES.T, VALUES.T], -1)),
        "no raymarch-volume file; it has exported_data (5 x 7 x 9 x 2 uint8)",
        "np.save('a.npy', h5py.File('b.h5')['exported_data'][:, :, :, 0].T)",
    ),
    Cure(
        "b.ims",
        hdf5(DataSet__R0__T0__C0__Data=VALUES.T, DataSetInfo=np.zeros(3)),
        "DataSet/R0/T0/C0/Data (5 x 7 x 9 uint8)",
        "np.save('a.npy', h5py.File('b.ims')['DataSet/R0/T0/C0/Data'][:, :, :].T)",
    ),
    Cure(
        "b.nc",
        hdf5(rho=VALUES.T[None], x=np.arange(9)),
        "rho (1 x 5 x 7 x 9 uint8), x (9 int64)",
        "np.save('a.npy', h5py.File('b.nc')['rho'][0, :, :, :].T)",
    ),
    Cure(
        "b.mat",
        hdf5(scan=VALUES.T),
        "is HDF5 of another program",
        "np.save('a.npy', h5py.File('b.mat')['scan'][:, :, :].T)",
    ),
    Cure(
        "b.hdf5",
        hdf5(mask=VALUES.T > 5),
        "mask (5 x 7 x 9 bool)",
        "np.save('a.npy', h5py.File('b.hdf5')['mask'][:, :, :].T)",
        values=VALUES > 5,
    ),
    # NIfTI.
    Cure(
        "b.nii",
        nifti(VALUES + 0j),
        "has 2 channels along axis 0, want one volume; choose one by channel=0",
        loads="b.nii",
        then={"channel": 0},
    ),
    Cure(
        "b.nii.gz",
        nifti(FOUR),
        "has 2 points in time along axis 3, want one volume; choose one by time=0",
        loads="b.nii.gz",
        then={"time": 1},
    ),
    Cure(
        "b.mgz",
        lambda path: nibabel.save(nibabel.MGHImage(VALUES, np.eye(4)), path),
        "is MGZ of FreeSurfer",
        "i = nibabel.load('b.mgz'); nibabel.save(nibabel.Nifti1Image(i.get_fdata(), i.affine), 'a.nii.gz')",
        loads="a.nii.gz",
    ),
    Cure(
        "b.mgh",
        lambda path: nibabel.save(nibabel.MGHImage(VALUES, np.eye(4)), path),
        "is MGH of FreeSurfer",
        "i = nibabel.load('b.mgh'); nibabel.save(nibabel.Nifti1Image(i.get_fdata(), i.affine), 'a.nii.gz')",
        loads="a.nii.gz",
    ),
    # NRRD and MetaImage.
    Cure(
        "b.nrrd",
        octets(NRRD.replace("uint8", "block\nblock size: 1").encode() + b"\n" + RAW),
        "write their type into the header, such as type: float",
        by_hand=replaced(b"type: block", b"type: uint8"),
        loads="b.nrrd",
    ),
    Cure(
        "b.nrrd",
        octets(NRRD.replace("type: uint8", "type: uint8\ntype: uint8").encode() + b"\n" + RAW),
        "has the field 'type' twice; take one of the two lines out of its header",
        by_hand=replaced(b"type: uint8\ntype: uint8", b"type: uint8"),
        loads="b.nrrd",
    ),
    Cure(
        "b.nhdr",
        elsewhere,
        "its values are in '../scans/v.raw', want v.raw beside it; move it there",
        by_hand=take,
        loads="b.nhdr",
    ),
    Cure(
        "b.nrrd",
        octets((NRRD + "space directions: (1,0) (0,1) (1,1)\n").encode() + b"\n" + RAW),
        "want 3; take it by",
        "np.save('a.npy', nrrd.read('b.nrrd')[0])",
    ),
    Cure(
        "b.mha",
        octets(b"NDims = 3\nNDims = 3\nDimSize = 9 7 5\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n" + RAW),
        "each key once; correct it",
        by_hand=replaced(b"NDims = 3\nNDims = 3\n", b"NDims = 3\n"),
        loads="b.mha",
    ),
    # MRC.
    Cure("b.mrc", complex_map, "holds complex numbers (mode 4)", "np.save('a.npy', np.abs(mrcfile.read('b.mrc').T))"),
    # Packed files and archives.
    Cure("b.vti.gz", packed(gzip.compress), "is packed by gzip", shell="gunzip -k b.vti.gz", loads="b.vti"),
    Cure(
        "b.scan",
        packed(gzip.compress),
        "is packed by gzip",
        shell="gunzip -c b.scan > FILE",
        fill={"FILE": "c.vti"},
        loads="c.vti",
    ),
    Cure("b.vti.bz2", packed(bz2.compress), "is packed by bzip2", shell="bunzip2 -k b.vti.bz2", loads="b.vti"),
    Cure("b.vti.xz", packed(lzma.compress), "is packed by xz", shell="unxz -k b.vti.xz", loads="b.vti"),
    Cure(
        "emd_1.map.gz",
        packed(gzip.compress),
        "is packed by gzip, and what is in it is no map",
        shell="gunzip -k emd_1.map.gz",
        by_hand=lambda path: path.with_name("emd_1.map").rename(path.with_name("emd_1.vti")),
        loads="emd_1.vti",
    ),
    Cure("b.tar", tarred, "is an archive", shell="tar -xf b.tar", loads="in.nrrd"),
    Cure("b.tar.gz", tarred, "is an archive packed by gzip", shell="tar -xf b.tar.gz", loads="in.nrrd"),
    Cure(
        "b.zip",
        zipped,
        "is a ZIP archive",
        shell="python -m zipfile -e b.zip FOLDER",
        fill={"FOLDER": "out"},
        loads="out/in.nrrd",
    ),
    # Files of other programs.
    Cure("b.fits", fits, "is FITS", "rm.load('b.fits', shape=(9, 7, 5), dtype='u1', offset=2880)", loads=None),
    Cure("b.am", amira, "is AmiraMesh", "rm.load('b.am', shape=(9, 7, 5), dtype='<u1', offset=148)", loads=None),
    Cure(
        "b.pvm",
        octets(b"PVM3\n9 7 5\n1 1 2\n1\n" + RAW),
        "is PVM",
        "rm.load('b.pvm', shape=(9, 7, 5), dtype='u1', offset=19, spacing=(1, 1, 2))",
        loads=None,
    ),
    Cure(
        "b.nc",
        netcdf,
        "is NetCDF 3",
        "np.save('a.npy', scipy.io.netcdf_file('b.nc', mmap=False).variables['NAME'][:].T)",
        fill={"NAME": "rho"},
    ),
    Cure(
        "b.mat", mat, "is a MATLAB file", "np.save('a.npy', scipy.io.loadmat('b.mat')['NAME'])", fill={"NAME": "scan"}
    ),
    Cure("b.pt", torch_file, "is a file of torch.save", "np.save('a.npy', torch.load('b.pt'))"),
    Cure(
        "b.pkl",
        lambda path: path.write_bytes(pickle.dumps(VALUES)),
        "is a pickle of Python",
        "np.save('a.npy', np.load('b.pkl', allow_pickle=True))",
    ),
    Cure(
        "b.csv",
        lambda path: np.savetxt(path, VALUES.reshape(9, -1), delimiter=","),
        "is a table of text",
        "np.save('a.npy', np.loadtxt('b.csv', delimiter=',').reshape(x, y, z))",
        fill={"x, y, z": "9, 7, 5"},
    ),
    Cure(
        "b.csv",
        lambda path: np.savetxt(path, VALUES.ravel(), header="density", comments=""),
        "is a table of text",
        "np.save('a.npy', np.loadtxt('b.csv', skiprows=1).reshape(x, y, z))",
        fill={"x, y, z": "9, 7, 5"},
    ),
    Cure(
        "s0.png",
        lambda path: [PIL.Image.fromarray(VALUES[:, :, k].T).save(path.with_name(f"s{k}.png")) for k in range(5)],
        "is a picture, want a volume",
        STACK.format("png"),
    ),
    Cure(
        "s0.jpg",
        lambda path: [PIL.Image.fromarray(VALUES[:, :, k].T).save(path.with_name(f"s{k}.jpg")) for k in range(5)],
        "is a picture, want a volume",
        STACK.format("jpg"),
        values=None,
    ),
    Cure(
        "b.ply",
        lambda path: trimesh.creation.icosphere().export(path),
        "is a mesh, want a volume",
        "np.save('a.npy', trimesh.load('b.ply', force='mesh').voxelized(PITCH).fill().matrix)",
        fill={"PITCH": "0.2"},
        values=None,
    ),
    Cure(
        "b.glb",
        lambda path: trimesh.creation.icosphere().export(path),
        "is a mesh, want a volume",
        "np.save('a.npy', trimesh.load('b.glb', force='mesh').voxelized(PITCH).fill().matrix)",
        fill={"PITCH": "0.2"},
        values=None,
    ),
    # What only a hand can do, or another program.
    Cure(
        "b.nii.gz",
        text("<!DOCTYPE html>\n<html><body>Log in</body></html>"),
        "is a page of the web and not the file itself; download it again",
        by_hand=nifti(),
        loads="b.nii.gz",
    ),
    Cure(
        "b.nrrd",
        text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"),
        "is a pointer of Git LFS, not the file itself; fetch it: git lfs pull",
        by_hand=lambda path: rm.save(rm.ScalarVolume(VALUES), path, overwrite=True),
        loads="b.nrrd",
    ),
]


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: f"{cure.name} {cure.said[:24]}")
def test_what_a_message_says_mends_the_mistake(cure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(cure.name)
    cure.make(path.absolute())
    with pytest.raises(rm.RaymarchError) as told:
        rm.load(path, **cure.how)
    said = str(told.value)
    for part in (str(path), cure.said, cure.code, cure.shell):
        assert part in said, said
    assert "\n" not in said and "fault" not in said and "restore it from a copy" not in said
    code, shell = cure.code, cure.shell
    for word, value in cure.fill.items():
        code, shell = code.replace(word, value), shell.replace(word, value)
    found = None
    if shell:
        subprocess.run(shell, shell=True, check=True, timeout=60)
    if cure.by_hand is not None:
        cure.by_hand(path.absolute())
    elif cure.loads is None:
        found = eval(code, {"rm": rm})
    elif code:
        names = {"np": np, "h5py": h5py, "nibabel": nibabel, "mrcfile": mrcfile, "nrrd": nrrd, "trimesh": trimesh}
        names |= {"glob": glob, "PIL": PIL, "torch": None, "scipy": None}
        for name in ("scipy.io", "torch"):
            if name.split(".")[0] + "." in code:
                exec(f"import {name}", names)
        exec(code.replace("')): np", "')); np"), names)
    if found is None:
        found = rm.load(cure.loads, **{**cure.how, **cure.then})
    if cure.values is not None:
        np.testing.assert_array_equal(found.numbers(), cure.values)


FOREIGN = {
    "a.dds": (b"DDS v3d\n" + bytes(60), "is a packed PVM volume"),
    "a.czi": (b"ZISRAWFILE" + bytes(60), "is CZI of Zeiss; open it in Fiji"),
    "a.nd2": (b"\xda\xce\xbe\x0a" + bytes(60), "is ND2 of Nikon"),
    "a.lif": (struct.pack("<ii", 0x70, 5) + bytes(60), "is LIF of Leica"),
    "a.dm4": (struct.pack(">i", 4) + bytes(60), "is DM4 of DigitalMicrograph"),
    "a.vtk": (b"# vtk DataFile Version 3.0\n", "is a legacy file of VTK, want .vti; open it in ParaView"),
    "a.vtu": (b'<?xml version="1.0"?><VTKFile type="UnstructuredGrid">', "is UnstructuredGrid of VTK, want ImageData"),
    "a.pvti": (b'<?xml version="1.0"?><VTKFile type="PImageData">', "is PImageData of VTK, want ImageData (.vti)"),
    "a.vgi": (b"{volume1}\n[file1]\n", "is of VGStudio, raw values beside a text (.vgi)"),
    "a.vol": (bytes(100), "is of VGStudio"),
    "a.HEAD": (b"\ntype = string-attribute\nname = X\n", "is a header of AFNI, want NIfTI"),
    "a.gipl": (bytes(252) + b"\xef\xff\xe9\xb0", "is GIPL, want NRRD; in Python: SimpleITK.WriteImage"),
    "a.mp4": (b"\0\0\0\x18ftypmp42" + bytes(60), "is a video"),
    "a.webp": (b"RIFF\0\0\0\0WEBP" + bytes(60), "is a picture, want a volume"),
    "a.exr": (b"\x76\x2f\x31\x01" + bytes(60), "is a picture, want a volume"),
    "a.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(60), "is a 7z archive"),
    "a.zst": (b"\x28\xb5\x2f\xfd" + bytes(60), "is packed by Zstandard"),
    "a.am": (b"# AmiraMesh BINARY-LITTLE-ENDIAN 2.1\nLattice { byte Data } @1(HxByteRLE,9)\n@1\n", "is AmiraMesh"),
    "a.v": (b"MATRIX72v" + bytes(60), "is ECAT, want NIfTI"),
    "a.pdf": (b"%PDF-1.4", "is a PDF"),
    "a.json": (json.dumps({"a": 1}).encode(), "is no volume file of a known format"),
    "a.txt": (b"hello\nworld\n", "is no volume file of a known format"),
    "a.xyz": (bytes(range(200)), "is no volume file of a known format"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_kind_is_told_for_what_it_is(name, tmp_path):
    data, said = FOREIGN[name]
    (tmp_path / name).write_bytes(data)
    for verb in (rm.load, rm.describe):
        with pytest.raises(rm.RaymarchError) as told:
            verb(tmp_path / name)
        assert said in str(told.value) and "\n" not in str(told.value) and "restore it" not in str(told.value)


@pytest.mark.parametrize("suffix", [".nii", ".nrrd", ".mha", ".mrc", ".vti", ".npy", ".npz", ".h5", ".tif"])
@pytest.mark.parametrize("name", ["a.pdf", "a.mp4", "a.czi", "a.webp"])
def test_a_name_of_ours_on_a_file_of_another_kind_hides_nothing(suffix, name, tmp_path):
    data, said = FOREIGN[name]
    (tmp_path / f"scan{suffix}").write_bytes(data)
    with pytest.raises(rm.RaymarchError) as told:
        rm.load(tmp_path / f"scan{suffix}")
    assert said in str(told.value)


def test_a_minc_is_told_and_nibabel_s_way_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("b.mnc", "w") as file:
        group = file.create_group("minc-2.0/image/0")
        image = group.create_dataset("image", data=VALUES.T.astype("u1"))
        image.attrs["dimorder"] = np.bytes_("zspace,yspace,xspace")
        image.attrs["valid_range"] = np.array([0.0, 255.0])
        group.create_dataset("image-min", data=0.0), group.create_dataset("image-max", data=255.0)
        for name, count in zip(("xspace", "yspace", "zspace"), VALUES.shape, strict=True):
            one = file.create_dataset(f"minc-2.0/dimensions/{name}", data=0)
            one.attrs["length"], one.attrs["step"], one.attrs["start"] = count, 1.0, 0.0
            one.attrs["spacing"] = np.bytes_("regular__")
    with pytest.raises(rm.RaymarchError, match="is MINC, want NIfTI; in Python: ") as told:
        rm.load("b.mnc")
    exec(str(told.value).split("in Python: ")[1], {"nibabel": nibabel})
    np.testing.assert_allclose(np.sort(rm.load("a.nii.gz").numbers().ravel()), np.sort(VALUES.ravel()))


# What cannot be saved, and where it can.

TURNED = np.array([[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
SHEARED = np.array([[1, 0.4, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


@pytest.mark.parametrize(
    ("suffix", "place"),
    [(".mrc", TURNED), (".map.gz", TURNED), (".xdmf", TURNED), (".vti", SHEARED), (".mrc", SHEARED)],
)
@pytest.mark.parametrize("other", [".nrrd", ".h5"])
def test_what_a_format_cannot_hold_is_held_by_those_that_the_message_names(suffix, place, other, tmp_path):
    volume = rm.ScalarVolume(VALUES, place, unit="Gy", name="頭部")
    with pytest.raises(rm.RaymarchError, match=r"cannot hold; save it as \.nrrd or \.h5"):
        rm.save(volume, tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())
    rm.save(volume, tmp_path / f"a{other}")
    found = rm.load(tmp_path / f"a{other}")
    np.testing.assert_allclose(found.world_from_index, place)
    np.testing.assert_array_equal(found.values, VALUES)
    assert (found.unit, found.name) == ("Gy", "頭部")


@pytest.mark.parametrize("suffix", [".nii.gz", ".nrrd", ".mha", ".map.gz", ".vti", ".npz", ".npy", ".h5"])
def test_a_file_over_the_budget_is_read_once_the_variable_says_so(suffix, tmp_path, monkeypatch):
    values = np.random.default_rng(0).integers(0, 9000, (60, 60, 60)).astype("i2")
    rm.save(rm.ScalarVolume(values), tmp_path / f"a{suffix}")
    monkeypatch.setenv("RAYMARCH_FILE_GB", "0.0001")
    with pytest.raises(rm.RaymarchError, match="over the budget of 100000 bytes; make them smaller, or set") as told:
        rm.load(tmp_path / f"a{suffix}")
    name, value = str(told.value).split("variable ")[1].split(" (gigabytes)")[0].split(" to ")
    monkeypatch.setenv(name, value)
    np.testing.assert_array_equal(rm.load(tmp_path / f"a{suffix}").numbers(), values)


@pytest.mark.parametrize("suffix", [".nii.gz", ".nrrd", ".mha", ".mrc", ".vti", ".npz", ".npy"])
@pytest.mark.parametrize("nan", ["empty", 0])
def test_values_that_are_none_are_read_once_something_stands_for_them(suffix, nan, tmp_path):
    rm.save(rm.ScalarVolume(VALUES.astype("f4") + 1, name="rock"), tmp_path / f"a{suffix}")
    data, one = (tmp_path / f"a{suffix}").read_bytes(), VALUES.astype("f4") + 1
    one[2, 3, 1] = np.nan
    if suffix == ".nii.gz":
        nibabel.save(nibabel.Nifti1Image(one, np.eye(4)), tmp_path / f"a{suffix}")
    elif suffix == ".npz":
        np.savez(tmp_path / "a.npz", values=one)
    elif suffix in (".npy", ".mrc"):
        at = len(data) - one.nbytes
        flat = one.ravel(order="F" if suffix == ".mrc" else "C")
        (tmp_path / f"a{suffix}").write_bytes(data[:at] + flat.astype("<f4").tobytes())
    elif suffix == ".nrrd":
        nrrd.write(str(tmp_path / "a.nrrd"), one)
    elif suffix == ".mha":
        head = b"NDims = 3\nDimSize = 9 7 5\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n"
        (tmp_path / "a.mha").write_bytes(head + one.astype("<f4").tobytes("F"))
    else:
        words = " ".join(map(str, one.ravel("F").tolist()))
        array = f'<DataArray type="Float32" Name="a" format="ascii">{words}</DataArray>'
        piece = f'<Piece Extent="0 8 0 6 0 4"><PointData>{array}</PointData></Piece>'
        (tmp_path / "a.vti").write_text(f'<VTKFile type="ImageData"><ImageData>{piece}</ImageData></VTKFile>')
    with pytest.raises(rm.RaymarchError, match=r"1 of its 315 values are NaN or infinite, .*nan='empty'.*nan=0"):
        rm.load(tmp_path / f"a{suffix}")
    found = rm.load(tmp_path / f"a{suffix}", nan=nan)
    assert found.values[2, 3, 1] == (1 if nan == "empty" else 0)
