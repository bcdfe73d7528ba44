"""Law: what spares a search when kernels are imported changes no answer of it."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from raymarch.cli.device_options import IMPORT_FRAME_FILE, name_importer

MODULE = """
from raymarch.engine import ti

@ti.func
def square(x):
    return x * x

@ti.data_oriented
class Cube:
    @ti.func
    def of(self, x):
        return x * square(x)

    @ti.kernel
    def cubed(self, x: ti.f64) -> ti.f64:
        return self.of(x)

@ti.kernel
def squared(x: ti.f64) -> ti.f64:
    return square(x)
"""


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A module with kernels, imported as a command does, and how many modules were asked for their files meanwhile."""
    (tmp_path / "kernels_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(inspect, "modulesbyfile", dict(inspect.modulesbyfile))
    asked = []
    known = inspect._filesbymodname

    class Counted(dict):
        def get(self, name, *rest):
            asked.append(name)
            return known.get(name, *rest)

    monkeypatch.setattr(inspect, "_filesbymodname", Counted(known))

    def importing(spared):
        inspect.modulesbyfile.pop(IMPORT_FRAME_FILE, None)
        if spared:
            name_importer()
        sys.modules.pop("kernels_of_a_test", None)
        asked.clear()
        return importlib.import_module("kernels_of_a_test"), len(asked)

    yield importing
    sys.modules.pop("kernels_of_a_test", None)


def test_functions_and_classes_are_told_apart_as_ever_in_fewer_searches(imported):
    searches = []
    for spared in (False, True):
        module, count = imported(spared)
        searches.append(count)
        assert (module.square.func.classfunc, module.Cube.of.func.classfunc) == (False, True)
        assert (module.squared(3.0), module.Cube().cubed(3.0)) == (9.0, 27.0)
    assert searches[1] < searches[0] / 2
