"""Exponential and logarithms good to some 1e-7 near zero: polynomials in f32, where the device's own is not as good.

What a sample weighs is known when an exponential, a logarithm and another exponential are, one after the other: a march
waits for these more than for memory. So polynomials are summed up in parts that do not wait for each other (Estrin).
"""

from raymarch import runtime
from raymarch.engine import ti

LOG2_E = 1.4426950408889634

ROUNDING_SHIFT = 1.5 * 2.0**23  # added to a number under 2^22 it leaves the nearest whole number, in the last bits

UNIFORM_SCALE = 2.3283064e-10  # 32 random bits times this are uniform in 0..1


@ti.func
def clamp_low(x, low):
    """Maximum max(x, low), and `low` for NaN: one instruction, where ti.max takes four to keep NaN."""
    return ti.select(x > low, x, low)


@ti.func
def clamp_high(x, high):
    """Minimum min(x, high), and `high` for NaN."""
    return ti.select(x < high, x, high)


@ti.func
def exp(x):
    """Exponential e^x; in f32 on the CPU 2^n times a polynomial of degree 6, relative error 2e-7 (1 + |x|)."""
    y = ti.cast(0.0, float)
    if ti.static(runtime.single_precision() and runtime.runs_on_cpu()):
        scaled = clamp_high(clamp_low(x * LOG2_E, -126.0), 126.0)
        n = scaled + (ROUNDING_SHIFT + 127.0)
        f = scaled - (n - (ROUNDING_SHIFT + 127.0))
        f2 = f * f
        high = (0.055504109 + f * 0.0096181291) + f2 * (0.0013333558 + f * 0.00015403530)
        p = f * (0.69314718 + f * 0.24022651) + (f * f2) * high
        y = (1.0 + p) * ti.bit_cast(ti.bit_cast(n, ti.i32) << 23, ti.f32)
    else:
        y = ti.exp(x)
    return y


@ti.func
def log1p_unit(u):
    """Logarithm ln(1 + u), u in 0..1; in f32 u times a polynomial of degree 8 of least relative error, under 3e-7."""
    y = ti.cast(0.0, float)
    if ti.static(runtime.single_precision()):
        u2 = u * u
        u4 = u2 * u2
        low = (0.99999997 - 0.49999493 * u) + (0.33319097 - 0.24842982 * u) * u2
        high = (0.19106006 - 0.13663245 * u) + (0.07822594 - 0.02950523 * u) * u2
        y = u * (low + u4 * (high + 0.00523269 * u4))
    else:
        y = ti.select(u < 1e-4, u * (1.0 - u * (1 / 2 - u * (1 / 3 - u / 4))), ti.log(1.0 + u))
    return y


@ti.func
def log_of_rest(x):
    """Logarithm ln(1 - x) of x from -0.4 to under 1; in f32 a polynomial of degree 8, relative error under 4e-7.

    1 - x is 2^n (1 + u), u from sqrt(1/2) - 1 to sqrt(2) - 1, and u is -x itself where n is 0: so nothing cancels for a
    small x. ln(1 + u) / u is the polynomial of least relative error there, summed up in pairs that wait for no other.
    """
    y = ti.cast(0.0, float)
    if ti.static(runtime.single_precision()):
        n, u = 0, -x
        if x > 0.29:
            bits = ti.bit_cast(ti.cast(1.0 - x, ti.f32), ti.i32)
            n = (bits - 0x3F3504F3) >> 23
            u = ti.bit_cast(bits - (n << 23), ti.f32) - 1.0
        u2 = u * u
        low = (0.99999995 - 0.50000365 * u) + (0.33335059 - 0.24969909 * u) * u2
        high = (0.19900166 - 0.17250830 * u) + (0.16222579 - 0.10106891 * u) * u2
        y = n * 0.69314718 + u * (low + high * (u2 * u2))
    else:
        y = ti.select(ti.abs(x) < 1e-4, -x * (1.0 + x * (1 / 2 + x * (1 / 3 + x / 4))), ti.log(1.0 - x))
    return y


@ti.func
def is_finite(x):
    """Finiteness of x, neither infinite nor NaN; read off its bits, which fast math, of a GPU, respects."""
    good = False
    if ti.static(runtime.single_precision()):
        good = (ti.bit_cast(ti.cast(x, ti.f32), ti.i32) & 0x7F800000) != 0x7F800000
    else:
        good = (ti.bit_cast(ti.cast(x, ti.f64), ti.i64) >> 52) & 0x7FF != 0x7FF
    return good


@ti.func
def hash_u32(a, b, c):
    """Counter-based random numbers, 32 bits of three integers (PCG hash rounds, Jarzynski and Olano 2020)."""
    x = ti.cast(a, ti.u32) * ti.u32(1664525) + ti.u32(1013904223)
    y = ti.cast(b, ti.u32) * ti.u32(1664525) + ti.u32(1013904223)
    z = ti.cast(c, ti.u32) * ti.u32(1664525) + ti.u32(1013904223)
    x += y * z
    y += z * x
    z += x * y
    x ^= x >> ti.u32(16)
    y ^= y >> ti.u32(16)
    z ^= z >> ti.u32(16)
    x += y * z
    y += z * x
    z += x * y
    return x ^ (z >> ti.u32(7))


# Parallel loops of few iterations: how Taichi is brought to run them on more than one thread.

TASK_STRIDE = 512  # a parallel loop needs about a thousand iterations to use its threads: one in 512 works
RAYS_PER_CHUNK = 256  # neighbouring rays that one slot takes before the next does, so that all have as much to do


@ti.func
def put_numbers(field: ti.template(), r, numbers):
    """Put a vector to place r of a field of vectors that may have room for more."""
    if ti.static(field.n == numbers.n):
        field[r] = numbers
    else:
        for c in ti.static(range(numbers.n)):
            field[r][c] = numbers[c]
