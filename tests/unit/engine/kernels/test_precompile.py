"""All kernels are known by one list, and who asked for it is told when one is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import penstock.engine.kernels
from penstock.engine.kernels.precompile import MODULES
from tests.harness.patience import PATIENCE_S

ROOT = Path(penstock.engine.kernels.__file__).parents[2]
FIRST_CALL = """
from penstock.engine.kernels.compile_notice import notify_on_compile
notify_on_compile(lambda: print("compiling"))
from penstock.engine.kernels.precompile import MODULES
from penstock.engine.kernels.kernel import Kernel
kernels = [kernel for kernel in Kernel.every if kernel.__module__ == "penstock.engine.kernels.index.slots"][:2]
print([kernel.load() for kernel in kernels], [kernel.load() for kernel in kernels])
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

    assert printed() == ["compiling", "[True, True] [False, False]"]
    assert printed() == ["[False, False] [False, False]"]
