"""Limits of the system, and users without rights."""

from __future__ import annotations

from hostile_cases.case import EITHER, FIT, REFUSED, WORKS, Area
from hostile_cases.judge import hold
from hostile_cases.place import Place, temporary_of

area = Area("limits")
RENDER = "render ball.h5 --orbit 1 --size 8 --out pics"
PICTURES = ("pics", "pics/*.png")
POSIX, LINUX, STRANGER = ("posix",), ("linux",), ("stranger",)


def _within(limit: str, value: int, do: str, says: str, expect: str = EITHER):
    """A probe: a command under a limit of the system."""

    def probe(place: Place) -> str:
        import resource

        kind = getattr(resource, limit)
        run = place.start(do, before=lambda: resource.setrlimit(kind, (value, value)))
        return hold(run.wait(), expect, says)

    return probe


def _nobody(do: str, expect: str, says: str, ready=None):
    """A probe: as a user without rights, in this folder of another."""

    def probe(place: Place) -> str:
        for folder in (place.folder.parent, temporary_of(place.folder)):
            folder.chmod(0o755)
        if ready is not None:
            ready(place.folder)
        home = {"HOME": "/nonexistent", "TI_OFFLINE_CACHE_FILE_PATH": None, "TMPDIR": None}
        return hold(place.run(do, user=65534, **home), expect, says)

    return probe


CASES = [
    area.probe("800 MB of addresses (ulimit -v)", _within("RLIMIT_AS", 800_000 << 10, RENDER, "memory"), makes=PICTURES,
               needs=LINUX),
    area.probe("3 GB of addresses", _within("RLIMIT_AS", 3 << 30, RENDER, "memory"), makes=PICTURES, needs=LINUX),
    area.probe("20 open files", _within("RLIMIT_NOFILE", 20, RENDER, "open files"), makes=PICTURES, needs=POSIX),
    area.probe("a stack of 512 KB", _within("RLIMIT_STACK", 512 << 10, RENDER, "stack|memory"), makes=PICTURES,
               needs=LINUX),
    area.probe("no core files, no locked memory", _within("RLIMIT_CORE", 0, "info ball.h5", "", WORKS), needs=POSIX),
    area.probe("a user without home or rights reads", _nobody("info ball.h5", WORKS, ""), needs=STRANGER),
    area.probe("a user without rights renders here", _nobody(RENDER, REFUSED, "pics.*(made|denied)"), needs=STRANGER),
    area.probe("a user without rights fits here", _nobody(FIT, REFUSED, "out.h5.*(denied|may write)"), needs=STRANGER),
    area.probe("a volume that may not be read",
               _nobody("info ball.h5", REFUSED, "ball.h5.*(denied|permission)", lambda f: (f / "ball.h5").chmod(0o600)),
               needs=STRANGER),
    area.probe("an image that may not be read",
               _nobody("evaluate ball.h5 set", REFUSED, "r_1.*(denied|permission)",
                       lambda f: (f / "set/test/r_1.png").chmod(0)), needs=STRANGER),
    area.probe("a json that may not be read",
               _nobody("evaluate ball.h5 set", REFUSED, "transforms_test.*(denied|permission)",
                       lambda f: (f / "set/transforms_test.json").chmod(0)), needs=STRANGER),
    area.probe("a set that may not be entered",
               _nobody("evaluate ball.h5 set", REFUSED, "set.*(denied|permission)", lambda f: (f / "set").chmod(0)),
               needs=STRANGER),
]  # fmt: skip
