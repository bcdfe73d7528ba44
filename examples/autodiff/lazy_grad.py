"""What lazy_grad takes and leaves.

It gives a gradient to each float field already placed below the root, in each of its blocks, and puts the gradients
behind the block's values (1), a vector's components in their order (7). It passes over integer fields (2) and
gradients that have a place (3), fields with `shape` too (4). Calling it twice does no harm (5). A field placed after
it gets no gradient (6).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
a, b, apart, late = (ti.field(float) for _ in range(4))
number = ti.field(ti.i32)
shaped = ti.field(float, shape=4, needs_grad=True)
vector = ti.Vector.field(3, float)
ti.root.dense(ti.i, 4).place(a, b)
ti.root.dense(ti.i, 4).place(vector, number, apart)
ti.root.dense(ti.i, 4).place(apart.grad)
ti.root.lazy_grad()
ti.root.lazy_grad()
ti.root.dense(ti.i, 4).place(late)
a.fill(1.0)


def offset(x):
    return x.snode._offset_bytes_in_parent_cell


assert [offset(f) for f in (a, b, a.grad, b.grad)] == [0, 8, 16, 24]  # (1)
assert number.grad is None  # (2)
assert apart.grad.snode.parent() != apart.snode.parent()  # (3)
assert shaped.grad.snode.parent() != shaped.snode.parent() and shaped.snode.parent()._cell_size_bytes == 8  # (4)
assert a.snode.parent()._cell_size_bytes == 32  # (5)
try:
    late.grad[0]
    missing = False
except AttributeError:
    missing = True
assert missing  # (6)
parts = [vector.grad.get_scalar_field(k) for k in range(3)]
assert [offset(part) - offset(parts[0]) for part in parts] == [0, 8, 16]  # (7)
