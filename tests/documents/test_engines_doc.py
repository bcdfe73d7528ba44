"""Law: what docs/engines.md shows of Python runs in a kernel, and its table of wheels is that of pyproject.toml."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
USED = """
import raymarch as rm

rm.start("cpu")


@ti.kernel
def nine() -> float:
    return squared(3.0)


assert nine() == 9.0
"""


def test_a_function_of_the_page_is_compiled(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(BLOCK + USED, encoding="utf-8")
    subprocess.run([sys.executable, str(file)], check=True, timeout=120)


def test_what_is_installed_where_is_what_the_page_says():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(
        r'"taichi>=1\.7\.3,<1\.8; python_version < \'3\.14\' and platform_machine != \'aarch64\'"', project
    )
    assert re.search(
        r'"quadrants>=1\.3\.3,<1\.5; python_version >= \'3\.14\' or platform_machine == \'aarch64\'"', project
    )
    assert 'requires-python = ">=3.10,<3.15"' in project and "3.14" in TEXT and "Linux on ARM" in TEXT
