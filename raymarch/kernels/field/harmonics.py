"""Real spherical harmonics up to degree 3 and their slopes, orthonormal on the sphere, in Cartesian form.

Each is a constant of `volumes/harmonics.py` times a polynomial; a slope's factors are those of its derivative.
"""

from raymarch.engine import ti
from raymarch.volumes.harmonics import C1, C20, C21, C22, C30, C31, C32, C33, Y00


@ti.func
def basis(degree: ti.template(), d):
    """Spherical harmonics Y_k(d), (degree + 1)^2 of them, of a unit direction d; l = 0, 1, ... and m = -l .. l."""
    Y = ti.Vector.zero(float, (degree + 1) ** 2)
    x, y, z = d[0], d[1], d[2]
    Y[0] = Y00
    if ti.static(degree >= 1):
        Y[1] = -C1 * y
        Y[2] = C1 * z
        Y[3] = -C1 * x
    if ti.static(degree >= 2):
        xx, yy, zz = x * x, y * y, z * z
        Y[4] = C21 * x * y
        Y[5] = -C21 * y * z
        Y[6] = C20 * (2.0 * zz - xx - yy)
        Y[7] = -C21 * x * z
        Y[8] = C22 * (xx - yy)
        if ti.static(degree >= 3):
            Y[9] = -C33 * y * (3.0 * xx - yy)
            Y[10] = 2.0 * C32 * x * y * z
            Y[11] = -C31 * y * (4.0 * zz - xx - yy)
            Y[12] = C30 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy)
            Y[13] = -C31 * x * (4.0 * zz - xx - yy)
            Y[14] = C32 * z * (xx - yy)
            Y[15] = -C33 * x * (xx - 3.0 * yy)
    return Y


@ti.func
def basis_slope(degree: ti.template(), d):
    """dY_k / dd, ((degree + 1)^2, 3), of the polynomials as they stand in `basis`: it is for d along the sphere."""
    s = ti.Matrix.zero(float, (degree + 1) ** 2, 3)
    x, y, z = d[0], d[1], d[2]
    if ti.static(degree >= 1):
        s[1, 1] = -C1
        s[2, 2] = C1
        s[3, 0] = -C1
    if ti.static(degree >= 2):
        s[4, 0], s[4, 1] = C21 * y, C21 * x
        s[5, 1], s[5, 2] = -C21 * z, -C21 * y
        s[6, 0], s[6, 1], s[6, 2] = -2.0 * C20 * x, -2.0 * C20 * y, 4.0 * C20 * z
        s[7, 0], s[7, 2] = -C21 * z, -C21 * x
        s[8, 0], s[8, 1] = 2.0 * C22 * x, -2.0 * C22 * y
    if ti.static(degree >= 3):
        s[9, 0], s[9, 1] = -6.0 * C33 * x * y, -3.0 * C33 * (x * x - y * y)
        s[10, 0], s[10, 1], s[10, 2] = 2.0 * C32 * y * z, 2.0 * C32 * x * z, 2.0 * C32 * x * y
        s[11, 0] = 2.0 * C31 * x * y
        s[11, 1] = -C31 * (4.0 * z * z - x * x - 3.0 * y * y)
        s[11, 2] = -8.0 * C31 * y * z
        s[12, 0], s[12, 1] = -6.0 * C30 * x * z, -6.0 * C30 * y * z
        s[12, 2] = 3.0 * C30 * (2.0 * z * z - x * x - y * y)
        s[13, 0] = -C31 * (4.0 * z * z - 3.0 * x * x - y * y)
        s[13, 1] = 2.0 * C31 * x * y
        s[13, 2] = -8.0 * C31 * x * z
        s[14, 0], s[14, 1] = 2.0 * C32 * x * z, -2.0 * C32 * y * z
        s[14, 2] = C32 * (x * x - y * y)
        s[15, 0] = -3.0 * C33 * (x * x - y * y)
        s[15, 1] = 6.0 * C33 * x * y
    return s
