"""Faults in images and image sets: decoding, pictures, frames, readers."""

from mutants_cases.fault import Fault

SETS = "tests/io/test_image_sets.py::"
DIFFER = "tests/io/test_views_that_differ.py::"
READERS = "tests/io/test_readers.py::"

FAULTS = [
    Fault(
        "16 bit lose their upper half",
        "io/images/decode.py",
        "(values >> 8).astype(np.uint8)",
        "(values & 255).astype(np.uint8)",
        (SETS + "test_every_kind_of_png_becomes_colour",),
    ),
    Fault(
        "masks of another height pass",
        "io/images/decode.py",
        "if one[:2] != full:",
        "if one[0] != full[0]:",
        (DIFFER + "test_a_mask_has_its_image_s_size",),
    ),
    Fault(
        "images with an orientation are turned the other way",
        "io/images/decode.py",
        "6: lambda image: image[::-1].swapaxes(0, 1)",
        "6: lambda image: image[:, ::-1].swapaxes(0, 1)",
        (DIFFER + "test_an_orientation_is_applied_once",),
    ),
    Fault(
        "what nobody sees bleeds into a smaller image",
        "io/images/shrink.py",
        "some[..., :3] *= some[..., 3:] / 255",
        "some[..., :3] *= 1",
        (DIFFER + "test_a_smaller_image_is_the_mean_of_what_lies_under_its_pixels",),
    ),
    Fault(
        "the largest image has twice the pixels",
        "io/images/header.py",
        "MOST_PIXELS = 1 << 26",
        "MOST_PIXELS = 1 << 27",
        (SETS + "test_a_huge_image_is_refused_before_decoding",),
    ),
    Fault(
        "pictures are darker by half a level",
        "io/images/write.py",
        "np.rint(np.clip(image, 0, 1) * 255)",
        "np.floor(np.clip(image, 0, 1) * 255)",
        (SETS + "test_pictures_are_clipped_and_rounded", SETS + "test_pictures_come_back_as_they_were_written"),
    ),
    Fault(
        "near is dark and far is white",
        "io/images/write.py",
        "grey[met] = 1 - 0.8 * np.clip(",
        "grey[met] = 0.2 + 0.8 * np.clip(",
        (SETS + "test_depth_is_white_near_dark_far_and_black_where_nothing_is",),
    ),
    Fault(
        "alpha is divided by the limit of colours",
        "io/images/write.py",
        "[image[..., :3] / limit, image[..., 3:]]",
        "[image[..., :3] / limit, image[..., 3:] / limit]",
        ("tests/cli/test_keeping.py::test_numbers_over_1_are_told_or_scaled",),
    ),
    Fault(
        "a backslash does not lead upwards",
        "io/image_sets/frame_file.py",
        'upwards = ".." in PureWindowsPath(text).parts',
        'upwards = ".." in PurePosixPath(text).parts',
        (SETS + "test_links_are_followed_where_the_user_says_so",),
    ),
    Fault(
        "links lead out of a set unasked",
        "io/image_sets/frame_file.py",
        "if not inside and not follow_links:",
        "if not inside and follow_links:",
        (SETS + "test_links_out_of_the_folder_are_refused",),
    ),
    Fault(
        "names that differ in their letters' case are two",
        "io/image_sets/frame_file.py",
        'unicodedata.normalize("NFC", name).casefold()',
        'unicodedata.normalize("NFC", name)',
        (SETS + "test_no_two_views_are_one_file_name_on_any_disk",),
    ),
    Fault(
        "the principal point is in the middle of the height",
        "io/image_sets/frames.py",
        'value("cx", width / 2)',
        'value("cx", height / 2)',
        (SETS + "test_a_set_is_read_as_it_was_written",),
    ),
    Fault(
        "distorted lenses pass as ideal",
        "io/image_sets/frames.py",
        "if value(name, 0.0):",
        "if value(name, 0.0) > 1:",
        (SETS + "test_bad_keys_are_refused",),
    ),
    Fault(
        "a number per frame loses to that of the set",
        "io/image_sets/nerf_synthetic.py",
        "{**document, **frame}",
        "{**frame, **document}",
        (SETS + "test_pixels_win_over_the_angle",),
    ),
    Fault(
        "a set needs all of its splits in the layout",
        "io/image_sets/nerf_synthetic.py",
        "return any(_lists_frames(path)",
        "return all(_lists_frames(path)",
        (READERS + "test_one_split_of_the_layout_is_enough",),
    ),
    Fault(
        "the caller's background is not the views'",
        "io/image_sets/load.py",
        "views = replace(views, background=require_colour(background))",
        "views = replace(views, background=views.background)",
        (SETS + "test_the_background_is_the_caller_s",),
    ),
]
