"""Versions of installed packages; of one that runs from its sources without being installed, "not installed"."""

from importlib.metadata import PackageNotFoundError, version

ABSENT = "not installed"


def version_of(package: str) -> str:
    """Version of a package, or `ABSENT`: what is said of it beside a result is never worth the result.

    Example:
        >>> version_of("no-such-package")
        'not installed'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
