"""All kernels are known by one list, and who asked for it is told when one is compiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import penstock.engine.kernels
from penstock.engine.kernels.precompile import MODULES
from tests.harness.patience import PATIENCE_S

ROOT = Path(penstock.engine.kernels.__file__).parents[2]
FIRST_CALL = """
import sys
import logging
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from penstock.engine.api.slow_steps import SLOW_STEPS
from penstock.engine.kernels.index import slots
from penstock.engine.kernels.kernel import Kernel
kernels = [kernel for kernel in Kernel.every if kernel in (slots.retain, slots.empty)]
print([kernel.load() for kernel in kernels], [kernel.load() for kernel in kernels])
SLOW_STEPS.report_compiled()
SLOW_STEPS.report_compiled()
"""


def test_no_kernel_is_forgotten() -> None:
    files = Path(penstock.engine.kernels.__file__).parent.rglob("*.py")
    having = {file.stem for file in files if "\n@kernel(" in file.read_text()}
    assert having == {module.__name__.rpartition(".")[2] for module in MODULES}


def test_compiling_is_told_once_and_kept(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}

    def printed() -> list[str]:
        command = [sys.executable, "-c", FIRST_CALL]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        ).stdout.splitlines()

    notice, loaded, compiled = printed()
    assert notice.startswith("compiling kernels for this machine: once each")
    assert loaded == "[True, True] [False, False]"
    assert re.fullmatch(r"compiled 2 kernels in \d+\.\d s", compiled)
    assert printed() == ["[False, False] [False, False]"]
