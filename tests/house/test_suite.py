"""Law: the suite says what it tries: each file its law, each group files that are there, and rooms that docs list."""

from __future__ import annotations

import re

from groups import GROUPS, TESTS, group_of, group_of_test

FILES = sorted(TESTS.glob("*/test_*.py"))


def test_every_file_opens_with_its_law():
    lawless = [file.name for file in FILES if not re.match(r'"""Laws?\b.{20,}', file.read_text())]
    assert lawless == []


def test_every_file_has_a_name_of_its_own():
    """Test folders are no packages, so pytest would refuse the second of a name."""
    names = [file.name for file in FILES]
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_groups_name_files_that_are_there():
    paths = [file.relative_to(TESTS).as_posix() for file in FILES]
    for starts in GROUPS.values():
        assert [start for start in starts if not any(path.startswith(start) for path in paths)] == []


def test_files_of_the_march_share_a_worker():
    together = {file.parent.name for file in FILES if group_of(file) == "march"}
    assert {"kernels", "gradients", "registration"} <= together
    assert {group_of(file) for file in FILES if file.parent.name == "kernels"} == {"march"}


def test_a_test_belongs_to_the_group_of_its_file(request):
    assert {group_of_test(item.nodeid) for item in request.session.items} == {
        group_of(item.path) for item in request.session.items
    }


def test_what_waits_for_whole_is_in_the_command_that_runs_it(root):
    """In all folders, whatever it is a test of."""
    command = (root / "CONTRIBUTING.md").read_text().split("<!-- whole -->")[1].split("```")[1]
    assert "-m whole --whole --skips none" in command and "tests/" not in command
    later = [file for file in FILES if re.search(r"\bwhole\(|mark\.whole\b", file.read_text())]
    assert {"documents", "fitting", "kernels"} <= {file.parent.name for file in later}


def test_rooms_are_listed(root):
    listed = re.findall(
        r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", (root / "docs" / "testing.md").read_text()))
    )
    assert {file.parent.name for file in FILES} == set(listed)


def test_no_case_is_named_by_an_address(request):
    """Two workers would collect different tests."""
    assert [item.nodeid for item in request.session.items if " at 0x" in item.nodeid] == []
