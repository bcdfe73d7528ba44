"""Transfer between NumPy arrays and the grid, and resampling from one resolution to the next."""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import (
    BRICK_SAMPLES,
    gradient_index,
    is_present,
    old_cell_index,
    place_of_sample,
    sample_at,
    sample_index,
)
from raymarch.kernels.field.gather import cell_of, gather
from raymarch.kernels.field.occupancy import occupy_all
from raymarch.volumes.bricks import BRICK_SIDE

MAX_RAW_DENSITY = 3e38  # beyond any raw density, in single precision too; an infinity would be lost in fast arithmetic


@ti.kernel
def upload(
    density: ti.types.ndarray(ndim=3),
    features: ti.types.ndarray(ndim=4),
    grid: ti.template(),  # (x, y, z), (.., n)
):
    """Copy arrays of the level's shape into a dense grid; every cell counts as occupied."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        I = sample_index(grid, ti.Vector([i, j, k]))
        grid.density[I] = density[i, j, k]
        for c in ti.static(range(grid.features.n)):
            grid.features[I][c] = features[i, j, k, c]
    occupy_all(grid)


@ti.kernel
def download(grid: ti.template(), density: ti.types.ndarray(ndim=3), features: ti.types.ndarray(ndim=4)):
    """Copy the level's part of the grid into arrays."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        I = sample_index(grid, ti.Vector([i, j, k]))
        density[i, j, k] = grid.density[I]
        for c in ti.static(range(grid.features.n)):
            features[i, j, k, c] = grid.features[I][c]


@ti.kernel
def download_gradient(grid: ti.template(), density: ti.types.ndarray(ndim=3), features: ti.types.ndarray(ndim=4)):
    """Copy the level's part of the gradient into arrays."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        I = gradient_index(grid, sample_index(grid, ti.Vector([i, j, k])))
        density[i, j, k] = grid.g_density[I]
        for c in ti.static(range(grid.features.n)):
            features[i, j, k, c] = grid.g_features[I][c]


@ti.kernel
def density_in(density: ti.types.ndarray(ndim=3), grid: ti.template()):
    """Copy an array of the level's shape into a dense grid's density."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        grid.density[sample_index(grid, ti.Vector([i, j, k]))] = density[i, j, k]


@ti.kernel
def density_gradient_out(grid: ti.template(), density: ti.types.ndarray(ndim=3)):
    """Copy the level's part of the gradient by density into an array."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        density[i, j, k] = grid.g_density[gradient_index(grid, sample_index(grid, ti.Vector([i, j, k])))]


@ti.kernel
def fill(grid: ti.template(), nx: int, ny: int, nz: int, density: float, feature: float):
    """Constant values on a level's samples."""
    for i, j, k in ti.ndrange(nx, ny, nz):
        I = ti.Vector([i, j, k])
        if is_present(grid, I):
            grid.density[sample_index(grid, I)] = density
            grid.features[sample_index(grid, I)] = ti.Vector([feature] * grid.features.n)


@ti.kernel
def fill_harmonic(grid: ti.template(), nx: int, ny: int, nz: int, k: int):
    """Features of a level: the same everywhere for harmonic k, so small that they clamp no colour, none for others."""
    for i, j in ti.ndrange(nx, ny):  # all three would be over 2^31 in a sparse grid of 1,291 a side
        for m in range(nz):
            I = ti.Vector([i, j, m])
            if is_present(grid, I):
                for b in ti.static(range((grid.degree + 1) ** 2)):
                    for c in ti.static(range(grid.colours)):
                        n = ti.static(grid.colours * b + c)
                        grid.features[sample_index(grid, I)][n] = ti.select(b == k, 0.3 - ti.static(0.2 * (c % 3)), 0.0)


@ti.kernel
def save_level(grid: ti.template(), nx: int, ny: int, nz: int):
    """Keep a level's values in place of the gradient while `refine` overwrites them."""
    for i, j, k in ti.ndrange(nx, ny, nz):
        grid.g_density[i, j, k] = grid.density[i, j, k]
        grid.g_features[i, j, k] = grid.features[i, j, k]


@ti.func
def resample(grid: ti.template(), I, J, old_top, nx, ny, nz):
    """Trilinear values of the stashed level at sample I of one of (nx, ny, nz), put at index J of the fields."""
    local, n, first = I[0], nx, ti.Vector([0, 0, 0])
    if ti.static(grid.boxes > 1):
        n = nx // grid.boxes
        local, first[0] = I[0] % n, I[0] // n * ti.cast(old_top[0] + 1.0, ti.i32)
    p = ti.Vector([local / (n - 1), I[1] / (ny - 1), I[2] / (nz - 1)]) * old_top
    cell = cell_of(p, old_top)
    place = old_cell_index(grid, cell + first)
    grid.density[J] = gather(grid.g_density, place, p - cell)
    grid.features[J] = gather(grid.g_features, place, p - cell)


@ti.kernel
def refine(grid: ti.template(), old_top: ti.math.vec3, nx: int, ny: int, nz: int):
    """Trilinear values of the stashed level at the samples of a level of (nx, ny, nz); both span the same boxes."""
    for i, j, k in ti.ndrange(nx, ny, nz):
        I = ti.Vector([i, j, k])
        resample(grid, I, I, old_top, nx, ny, nz)


@ti.kernel
def clear_moments(grid: ti.template()):
    """Adam's moments to zero."""
    for I in ti.grouped(grid.m_density):
        grid.m_density[I] = 0
        grid.v_density[I] = 0
    for I in ti.grouped(grid.m_features):
        grid.m_features[I] = 0
        grid.v_features[I] = 0
    for C in ti.grouped(grid.m_cube):
        grid.m_cube[C] = 0
        grid.v_cube[C] = 0


@ti.kernel
def clear_slots(grid: ti.template()):
    """The slots' parts of the gradient to zero."""
    for I in ti.grouped(grid.d_density):
        grid.d_density[I] = 0
        if ti.static(grid.degree >= 0):
            grid.d_features[I] = 0
    if ti.static(grid.parted):
        for W in ti.grouped(grid.feature_cells):
            grid.feature_cells[W] = 0


@ti.kernel
def clear_gradients(grid: ti.template()):
    """The gradient and its marks to zero."""
    for I in ti.grouped(grid.density):
        grid.g_density[gradient_index(grid, I)] = 0
        if ti.static(grid.degree >= 0):
            grid.g_features[gradient_index(grid, I)] = 0
    for I in ti.grouped(grid.block_written):
        grid.block_written[I] = 0
        grid.block_has_gradient[I] = 0
    if ti.static(grid.parted):
        for W in ti.grouped(grid.feature_samples):
            grid.feature_samples[W] = 0


@ti.func
def is_read(grid: ti.template(), I):
    """Whether an occupied cell reads sample I of the level."""
    per_index = grid.cells_per_index[None]
    low, high = (I - 1) * per_index, (I + 1) * per_index
    first, last = ti.cast(ti.max(low, 0.0), ti.i32), ti.cast(high, ti.i32)
    for i in ti.static(range(3)):
        last[i] = ti.min(last[i], grid.cells[None][i] - 1)
    read = False
    a = first[0]
    while a <= last[0] and not read:
        b = first[1]
        while b <= last[1] and not read:
            c = first[2]
            while c <= last[2] and not read:
                read = grid.empty_distance[a, b, c] == 0
                c += 1
            b += 1
        a += 1
    return read


@ti.kernel
def empty_unoccupied(grid: ti.template(), density: ti.types.ndarray(ndim=3), low: float, high: float):
    """density = the nearest that is empty, of `low` to `high`, at samples of the level that no occupied cell reads."""
    for i, j, k in ti.ndrange(density.shape[0], density.shape[1], density.shape[2]):
        if not is_read(grid, ti.Vector([i, j, k])):
            density[i, j, k] = ti.max(ti.min(density[i, j, k], high), low)


@ti.kernel
def image_in(image: ti.types.ndarray(dtype=ti.u8, ndim=2), store: ti.template(), first: int):  # (pixel, 4)
    """Copy an RGBA image to the store, from its pixel `first` on."""
    for i in range(image.shape[0]):
        for c in ti.static(range(4)):
            store.pixels[first + i][c] = image[i, c]


@ti.kernel
def channels_in(image: ti.types.ndarray(dtype=ti.f32, ndim=2), store: ti.template(), first: int):  # (pixel, n)
    """Copy an image of channels, alpha the last, to the store, from its pixel `first` on."""
    for i in range(image.shape[0]):
        for c in ti.static(range(store.pixels.n)):
            store.pixels[first + i][c] = image[i, c]


@ti.kernel
def tiles_in(
    places: ti.types.ndarray(dtype=ti.i32, ndim=2),
    tiles: ti.types.ndarray(dtype=ti.i32, ndim=2),  # see StoreFields
    listed: ti.types.ndarray(dtype=ti.i32, ndim=1),
    store: ti.template(),
):
    """Copy where the views lie (view, 4), view and pixels that count of the tiles (tile, 2), and the list of tiles."""
    for v in range(places.shape[0]):
        for a in ti.static(range(4)):
            store.place[v][a] = places[v, a]
    for t in range(tiles.shape[0]):
        store.view[t] = tiles[t, 0]
        store.counting[t] = ti.cast(tiles[t, 1], ti.u16)
    for n in range(listed.shape[0]):
        store.list[n] = listed[n]


@ti.kernel
def directions_in(values: ti.types.ndarray(ndim=4), field: ti.template()):
    """field[i, j, k] = values[i, j, k, :]."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        for a in ti.static(range(field.n)):
            field[i, j, k][a] = values[i, j, k, a]


@ti.kernel
def shift_grid(moved: ti.template(), grid: ti.template(), dot: ti.template(), nx: int, ny: int, nz: int, h: float):
    """moved = grid + h dot's first column, density and features."""
    for i, j, k in ti.ndrange(nx, ny, nz):
        I = ti.Vector([i, j, k])
        if is_present(grid, I):
            J = sample_index(grid, I)
            moved.density[J] = grid.density[J] + h * dot.density[I][0]
            moved.features[J] = grid.features[J]
            for c in ti.static(range(dot.channels)):
                moved.features[J][c] += h * dot.features[I][c]


# Transfer between arrays of bricks and the pool of a sparse grid, and resampling of its bricks to another level.


@ti.kernel
def table_in(grid: ti.template(), table: ti.types.ndarray(dtype=ti.i32, ndim=3)):
    """Put a table of places, whose bricks then know where they lie; the one before becomes the old one."""
    for I in ti.grouped(grid.table):
        grid.old_table[I] = grid.table[I]
        grid.table[I] = 0
    for i, j, k in ti.ndrange(table.shape[0], table.shape[1], table.shape[2]):
        if table[i, j, k] != 0:
            grid.table[i, j, k] = table[i, j, k]
            grid.brick[table[i, j, k]] = ti.Vector([i, j, k])


@ti.kernel
def clear_missing(grid: ti.template(), empty: float):
    """Values of the bricks that are missing: nothing."""
    for n in range(BRICK_SAMPLES):
        grid.density[0, 0, n] = empty
        grid.features[0, 0, n] = ti.Vector.zero(float, grid.features.n)


@ti.kernel
def save_places(grid: ti.template(), places: int):
    """As `save_level`: keep the pool's values in place of the gradient while `refine_places` overwrites them."""
    for n in range(places * BRICK_SAMPLES):
        grid.g_density[0, 0, 0, n] = grid.density[0, 0, n]
        grid.g_features[0, 0, 0, n] = grid.features[0, 0, n]


@ti.kernel
def refine_places(grid: ti.template(), old_top: ti.math.vec3, places: int, shape: ti.math.ivec3, empty: float):
    """As `refine`, of the samples of the bricks that are there; those beyond the level are empty."""
    for n in range(BRICK_SAMPLES, places * BRICK_SAMPLES):
        I = sample_at(grid, n)
        if all(I < shape):
            resample(grid, I, ti.Vector([0, 0, n]), old_top, shape[0], shape[1], shape[2])
        else:
            grid.density[0, 0, n] = empty
            grid.features[0, 0, n] = ti.Vector.zero(float, grid.features.n)


@ti.kernel
def fill_places(grid: ti.template(), places: int, density: float, feature: float):
    """Constant values in all bricks that are there."""
    for n in range(BRICK_SAMPLES, places * BRICK_SAMPLES):
        grid.density[0, 0, n] = density
        grid.features[0, 0, n] = ti.Vector([feature] * grid.features.n)


@ti.func
def row_of(grid: ti.template(), place, m):
    """Place in the pool of sample m of a brick, counted by rows."""
    local = ti.Vector([m // (BRICK_SIDE * BRICK_SIDE), (m // BRICK_SIDE) % BRICK_SIDE, m % BRICK_SIDE])
    return place_of_sample(grid.table, (grid.brick[place] << 3) + local)


@ti.kernel
def bricks_in(density: ti.types.ndarray(ndim=2), features: ti.types.ndarray(ndim=3), grid: ti.template()):
    """Values of bricks, density (brick, 512) and features (brick, 512, channel), to the places from 1 on."""
    for b, m in ti.ndrange(density.shape[0], BRICK_SAMPLES):
        n = row_of(grid, 1 + b, m)
        grid.density[0, 0, n] = density[b, m]
        for c in ti.static(range(grid.features.n)):
            grid.features[0, 0, n][c] = features[b, m, c]


@ti.kernel
def bricks_out(
    grid: ti.template(),
    places: ti.types.ndarray(dtype=ti.i32, ndim=1),
    density: ti.types.ndarray(ndim=2),
    features: ti.types.ndarray(ndim=3),
):
    """Values of the bricks at `places`, as of `bricks_in`."""
    for b, m in ti.ndrange(density.shape[0], BRICK_SAMPLES):
        n = row_of(grid, places[b], m)
        density[b, m] = grid.density[0, 0, n]
        for c in ti.static(range(grid.features.n)):
            features[b, m, c] = grid.features[0, 0, n][c]


@ti.kernel
def empty_unread(
    grid: ti.template(),
    places: ti.types.ndarray(dtype=ti.i32, ndim=1),
    density: ti.types.ndarray(ndim=2),
    features: ti.types.ndarray(ndim=3),
    shape: ti.math.ivec3,
    empty: float,
):
    """density (brick, 512) = `empty` of samples that no occupied cell reads; those beyond the level are nothing."""
    for b, m in ti.ndrange(density.shape[0], BRICK_SAMPLES):
        I = sample_at(grid, row_of(grid, places[b], m))
        if not all(I < shape):
            density[b, m] = empty
            for c in range(features.shape[2]):
                features[b, m, c] = 0.0
        elif not is_read(grid, I):
            density[b, m] = ti.min(density[b, m], empty)
