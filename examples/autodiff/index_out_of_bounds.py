"""The index that is overwritten, continued.

The listing of taichi#2485 that shows this has a slip of its own: its loss reads `ewma_tape[row_num, column_num - 1]`
where the row should be `i`. Row `row_num` is one past the last: without `debug` the read goes unnoticed, with
`debug=True` it is an error (1).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64, debug=True)
rows, columns = 1, 2
tape = ti.field(float, shape=(rows, columns))


@ti.kernel
def past_the_end() -> float:
    return tape[rows, columns - 1]


try:
    past_the_end()
    message = ""
except AssertionError as error:  # Taichi's own assertion error is one
    message = str(error)
assert "of size (1, 2) with indices (1, 1)" in message  # (1)
