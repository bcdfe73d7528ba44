"""Versions of installed packages; of one that runs from its sources without being installed, "not installed"."""

from importlib.metadata import PackageNotFoundError, version

NOT_INSTALLED = "not installed"


def version_of(package: str) -> str:
    """Version of a package, or `NOT_INSTALLED`: what is said of it beside a result is never worth the result.

    Example:
        >>> version_of("no-such-package")
        'not installed'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED
