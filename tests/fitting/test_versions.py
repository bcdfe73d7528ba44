"""Law: what is said of the software beside a result is never worth the result."""

from importlib.metadata import PackageNotFoundError

import pytest

from raymarch import engine
from raymarch.fitting import report
from raymarch.system import versions


@pytest.fixture
def from_sources(monkeypatch):
    """The package runs from its sources, installed nowhere."""

    def absent(package):
        if package == "raymarch":
            raise PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr(versions, "version", absent)


def test_a_package_that_is_not_installed_is_said_to_be_none(from_sources):
    found = report.versions()
    assert (found["raymarch"], found[engine.NAME]) == ("not installed", "1.2.3")
