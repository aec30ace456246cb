"""Kernels: when their machine code is loaded, and when it is no longer found."""

import os
import subprocess
import sys

import llvmlite.binding
import numpy as np
import pytest

from penstock.engine.kernels import kernel as module
from penstock.engine.kernels.kernel import I64, IN_I64, Kernel
from penstock.engine.kernels.partition import counting_sort
from tests.harness.patience import PATIENCE_S


class Codegen:
    def magic_tuple(self):
        return ("machine",)


def total(values):
    found = 0
    for value in values:
        found += value
    return found


def test_a_kernel_is_compiled_at_its_first_call_for_its_signature_alone():
    compiled = Kernel(total, I64(IN_I64))
    assert not compiled._dispatcher.overloads
    assert compiled(np.arange(5)) == 10
    with pytest.raises(TypeError):
        compiled(np.arange(5.0))
    assert len(compiled._dispatcher.overloads) == 1


def test_machine_code_is_not_found_once_any_kernel_has_changed(monkeypatch):
    counting_sort(np.arange(3), 3)
    cache = module._KernelCache(total)
    before = cache._index_key("signature", Codegen())
    assert cache._index_key("signature", Codegen()) == before
    monkeypatch.setattr(module, "_sources", lambda: "other")
    assert cache._index_key("signature", Codegen()) != before


def test_the_cache_holds_machine_code_without_the_bitcode_it_was_made_of():
    compiled = Kernel(total, I64(IN_I64))
    # compiled here, and not loaded from a cache
    compiled._dispatcher.compile(compiled._signature)
    (result,) = compiled._dispatcher.overloads.values()
    (_, _, (code, bitcode)), *_ = module._MachineCode(total).reduce(result)
    assert len(code) > 1000
    names = {function.name for function in llvmlite.binding.parse_bitcode(bitcode).functions}
    assert result.fndesc.llvm_cpython_wrapper_name in names
    assert len(bitcode) < 4000


def test_a_kernel_runs_where_no_cache_can_be_written(monkeypatch):
    def refuse(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(module, "_KernelCache", refuse)
    assert Kernel(total, I64(IN_I64))(np.arange(4)) == 6


ALL = """
import importlib
from pathlib import Path
from penstock.engine.kernels import kernel as module
from numba.core.registry import cpu_target

top = Path(module.__file__).parent
names = sorted(".".join(path.relative_to(top).with_suffix("").parts) for path in top.rglob("[a-z]*.py"))
modules = [importlib.import_module(f"penstock.engine.kernels.{name}") for name in names]
kernels = {each for one in modules for each in vars(one).values() if isinstance(each, module.Kernel)}
loaded = 0
for each in kernels:
    cache = module._KernelCache(each._dispatcher.py_func)
    loaded += cache.load_overload(each._signature, cpu_target.target_context) is not None
assert len(kernels) > 50 and loaded, (len(kernels), loaded)
"""

ONE = """
import sys

import numpy as np

from penstock.engine.kernels.partition import counting_sort

counting_sort(np.arange(3), 3)
assert "numba.np.arrayobj" not in sys.modules
"""


def test_all_machine_code_there_is_can_be_loaded_where_nothing_was_compiled():
    """A symbol of it that is not known ends the process."""
    counting_sort(np.arange(3), 3)
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_machine_code_is_loaded_without_what_numba_compiles():
    counting_sort(np.arange(3), 3)
    done = subprocess.run([sys.executable, "-c", ONE], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_without_a_compiler_a_query_says_what_to_unset():
    program = "import penstock; penstock.connect().execute('SELECT k, COUNT(*) FROM (VALUES (1), (2)) AS t (k) GROUP BY k').fetchall()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert "RUN-2926" in done.stderr and "unset NUMBA_DISABLE_JIT" in done.stderr
