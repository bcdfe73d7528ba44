"""Formats of volume files that raymarch knows: a new one is a module beside this one, and a line here."""

from __future__ import annotations

from raymarch.arguments.checks import optional
from raymarch.arguments.extensions import listed
from raymarch.io.volumes.dicom.dicom import DICOM
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.hdf5.volume import HDF5
from raymarch.io.volumes.metaimage import METAIMAGE
from raymarch.io.volumes.mrc import MRC
from raymarch.io.volumes.nifti import NIFTI
from raymarch.io.volumes.nrrd import NRRD
from raymarch.io.volumes.numpy_files import NPY, NPZ
from raymarch.io.volumes.picture_slices import SLICES
from raymarch.io.volumes.tiff import TIFF
from raymarch.io.volumes.vtk import VTI
from raymarch.io.volumes.xdmf import XDMF
from raymarch.io.volumes.zarr import OME_ZARR

FORMATS = [HDF5, NRRD, NIFTI, METAIMAGE, MRC, VTI, TIFF, NPY, NPZ, OME_ZARR, DICOM, SLICES, XDMF]
KEEP_FITS = [HDF5]  # a fitted volume as it is: the others get its sigma alone

FORMAT = optional(listed(Format, FORMATS, "rm.Format"))
