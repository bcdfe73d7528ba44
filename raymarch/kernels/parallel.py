"""Parallel loops of few iterations: how Taichi is brought to run them on more than one thread."""

TASK_STRIDE = 512  # a parallel loop needs about a thousand iterations to use its threads: one in 512 works
RAYS_PER_CHUNK = 256  # neighbouring rays that one slot takes before the next does, so that all have as much to do
