"""Faults in files: replaced in one step, limits, JSON, HDF5 and its digest, formats of volumes."""

from mutants_cases.fault import Fault

VOLUMES = "tests/io/test_volumes.py::"
FORMATS = "tests/io/test_formats.py::"
SETS = "tests/io/test_image_sets.py::"
KEEPING = "tests/cli/test_keeping.py::"
ATOMIC, JSON, TEMPORARY = "io/files/atomic.py", "io/files/strict_json.py", "io/files/temporary.py"

FAULTS = [
    Fault(
        "an array of words is as wide as a hostile one",
        "io/volumes/stored_values.py",
        "longest > LONGEST_WORD",
        "longest < 0",
        ("tests/io/test_scalar_formats.py::test_a_hostile_file_is_refused_in_one_line",),
    ),
    Fault(
        "two transforms files are claimed alike",
        "io/image_sets/transforms.py",
        "specificity=4",
        "specificity=3",
        ("tests/io/test_transforms.py::test_files_of_splits_are_nerf_synthetic_s",),
    ),
    Fault(
        "a file gets its name before it is on the disk",
        ATOMIC,
        "_sync(temporary, os.O_RDWR)",
        "temporary.stat()",
        (VOLUMES + "test_a_failed_save_costs_nothing",),
    ),
    Fault(
        "a link is replaced, not what it leads to",
        ATOMIC,
        "target = Path(os.path.realpath(path))",
        "target = Path(os.path.abspath(path))",
        (VOLUMES + "test_a_link_stays_and_its_file_is_replaced",),
    ),
    Fault(
        "the disk's size is taken for what is free",
        ATOMIC,
        "if room.total and room.free < size:",
        "if room.total and room.total < size:",
        (KEEPING + "test_room_and_limits_are_asked_for_first",),
    ),
    Fault(
        "files that the system protects are not noticed",
        ATOMIC,
        'if error.errno == errno.EPERM or os.name == "nt":',
        'if error.errno == errno.ENOENT or os.name == "nt":',
        (KEEPING + "test_a_file_that_cannot_be_replaced_is_refused_first",),
    ),
    Fault(
        "gigabytes are megabytes",
        "io/files/limits.py",
        "return int(gigabytes * 1e9)",
        "return int(gigabytes * 1e6)",
        (FORMATS + "test_the_environment_raises_and_lowers_the_budget",),
    ),
    Fault(
        "numbers beyond a double are infinite",
        JSON,
        "return value if math.isfinite(value) else constant(digits)",
        "return value",
        (SETS + "test_bad_json_is_refused",),
    ),
    Fault(
        "of a key that comes twice the last one counts",
        JSON,
        "if len(seen) < len(pairs):",
        "if len(seen) > len(pairs):",
        (SETS + "test_bad_json_is_refused",),
    ),
    Fault(
        "lists are not counted before they are parsed",
        JSON,
        'groups += block.count(b"{") + block.count(b"[")',
        'groups += block.count(b"{")',
        (SETS + "test_json_of_more_than_frames_need_is_refused[lists]",),
    ),
    Fault(
        "values are counted in the last part of a file alone",
        JSON,
        'values += block.count(b",")',
        'values = block.count(b",")',
        (SETS + "test_json_of_more_than_frames_need_is_refused[numbers]",),
    ),
    Fault(
        "temporary files of other machines are removed at once",
        TEMPORARY,
        "(entry.name.startswith(_prefix()) or _is_old(entry))",
        "(entry.name.startswith(_prefix()) or True)",
        (KEEPING + "test_what_a_killed_process_left_is_removed_and_no_other",),
    ),
    Fault(
        "temporary files of the living are removed",
        TEMPORARY,
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        (KEEPING + "test_what_a_killed_process_left_is_removed_and_no_other",),
    ),
    Fault(
        "an image that a set lists is not known by a link to it",
        "io/files/ours.py",
        "if path.resolve() in _images(",
        "if path.absolute() in _images(",
        (KEEPING + "test_images_that_a_set_lists_are_kept_whoever_made_them",),
    ),
    Fault(
        "the digest is not compared",
        "io/volumes/hdf5.py",
        ".tolist() != schema.digest_of(arrays, notes):",
        '.tolist() == b"" != schema.digest_of(arrays, notes):',
        (VOLUMES + "test_the_digest_covers",),
    ),
    Fault(
        "attributes are digested without their values",
        "io/volumes/hdf5_schema.py",
        "digest.update(value.tobytes())",
        "digest.update(value.tobytes()[:0])",
        (VOLUMES + "test_the_digest_covers",),
    ),
    Fault(
        "a volume comes back with its scale for its shift",
        "io/volumes/hdf5_schema.py",
        'for name in ("shift", "scale"))',
        'for name in ("scale", "shift"))',
        (VOLUMES + "test_round_trip_keeps_the_activation",),
    ),
    Fault(
        "numbers that are not finite stay in provenance",
        "io/volumes/hdf5_provenance.py",
        "return value if math.isfinite(value) else None",
        "return value",
        (VOLUMES + "test_provenance_becomes_plain",),
    ),
    Fault(
        "a filter may come twice",
        "io/volumes/hdf5_open.py",
        "if not set(filters) <= FILTERS or len(set(filters)) < len(filters):",
        "if not set(filters) <= FILTERS:",
        (VOLUMES + "test_harmful_files_are_refused",),
    ),
    Fault(
        "only links to other files are refused",
        "io/volumes/hdf5_open.py",
        "if not isinstance(link, h5py.HardLink):",
        "if isinstance(link, h5py.ExternalLink):",
        (VOLUMES + "test_harmful_files_are_refused",),
    ),
    Fault(
        "a suffix does not tell two formats apart",
        "io/volumes/format.py",
        "[one for one in claiming if one in by_suffix] or claiming",
        "claiming",
        (FORMATS + "test_two_that_claim_a_file_are_told_by_name_unless_its_suffix_tells",),
    ),
]
