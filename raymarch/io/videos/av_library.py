"""PyAV, which reads and writes videos: the extra `video`."""

from __future__ import annotations

from types import ModuleType

from raymarch.errors import RaymarchError

INSTALL = 'pip install "raymarch[video]"'


def import_av(what: str = "videos") -> ModuleType:
    """PyAV; a RaymarchError that names the extra where it is missing, for `what` in the plural."""
    try:
        import av
    except ImportError as error:
        raise RaymarchError(f"{what} need PyAV, which is not installed ({error}); {INSTALL}") from error
    return av


def has_av() -> bool:
    """Whether PyAV is installed."""
    try:
        import_av()
    except RaymarchError:
        return False
    return True
