"""Law: the picture of the rooms in docs/design.md shows the rooms and imports that there are."""

import runpy


def test_the_picture_is_up_to_date(root):
    """After a room or an import between rooms changed: python docs/architecture.py."""
    script = runpy.run_path(str(root / "docs" / "architecture.py"))
    rooms, arrows = script["rooms_and_arrows"]()
    shown, shown_arrows = script["rooms_and_arrows_of_picture"]()
    assert set(shown) == set(rooms), "run python docs/architecture.py"
    assert shown_arrows == arrows, "run python docs/architecture.py"


def test_arrows_point_down_the_list(root):
    rooms, arrows = runpy.run_path(str(root / "docs" / "architecture.py"))["rooms_and_arrows"]()
    assert arrows and all(rooms.index(start) < rooms.index(end) for start, end in arrows)
    assert len(arrows) == len(set(arrows))
