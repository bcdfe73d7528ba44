"""Faults of ranks: what is dealt to whom, how they were started, and which numbers rays have."""

from mutants_cases.fault import Fault

LAWS = "tests/fitting/test_ranks.py::"
PART = (LAWS + "test_a_rank_has_its_part_of_the_machine",)
NEAR = (LAWS + "test_a_fit_by_ranks_is_that_of_one_process_up_to_rounding",)
ALONE = (LAWS + "test_a_process_of_its_own_is_no_rank",)

FAULTS = [
    Fault(
        "ranks take one GPU all together",
        "Launch.bind_gpu",
        "= seen[self.local_rank]",
        "= seen[0]",
        PART,
    ),
    Fault(
        "each rank takes all processors",
        "Launch.threads",
        "cores() // self.local_size",
        "cores()",
        PART,
    ),
    Fault(
        "a batch job of one process waits for others",
        "launched",
        "int(size) < 2",
        "int(size) < 1",
        ALONE,
    ),
    Fault(
        "the last pair of slots is counted twice",
        "comm:sum_in_pairs",
        "arrays[i] + arrays[i + 1]",
        "arrays[i] + arrays[-1]",
        (LAWS + "test_a_sum_has_the_same_bits_by_any_count_of_ranks",),
    ),
    Fault(
        "rays of a dealt step are numbered by their chunk alone",
        "place_among_all",
        "* chunk + n % chunk",
        "* chunk",
        NEAR,
    ),
    Fault(
        "slots in pairs leave out the upper half",
        "reduce:sum_in_pairs",
        "ti.static(first + count // 2)",
        "ti.static(first)",
        NEAR,
    ),
]
