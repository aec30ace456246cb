"""Kernels: loops over columns, compiled for one signature, cached on disk and loaded at the first call.

Array types of signatures: ``IN_*`` may be read-only (Arrow memory), ``OUT_*`` is written, ``SLOTS_*`` are
columns of a wider table.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import llvmlite.binding
from numba import config, njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.runtime import _nrt_python

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.slow_steps import SLOW_STEPS, SlowStep
from penstock.engine.kernels.interpreted import interpreted

_INTERPRETED_ROWS = 2_000
"""Rows that Python runs a kernel for before it is compiled: 20 ms, where compiling takes up to 2 s."""


@functools.cache
def _sources() -> str:
    """Return a digest of all kernels' source files. A kernel may inline loops of other files, which numba's
    check of one file at a time misses.
    """
    digest = hashlib.sha256()
    # Sorted, so that the digest does not depend on the file system.
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _register_runtime() -> None:
    """Register the addresses of numba's runtime that machine code calls. What numba compiles of its runtime
    is part of each kernel's machine code; compiling it again takes 25 ms.
    """
    for name, address in _nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _MachineCode(CompileResultCacheImpl):
    """What the cache stores of a compiled kernel.

    Each function of numba that a kernel calls has an environment: its constants and the globals of its
    module. Machine code reads no globals, so no module of numba is imported for them: that would take 25 ms.
    """

    def reduce(self, result: Any) -> tuple[Any, ...]:
        (name, kind, (machine_code, _)), *parts, environments = super().reduce(result)
        library = (name, kind, (machine_code, _entry_points(result.fndesc)))
        return (library, *parts, tuple(map(_without_globals, environments)))


def _entry_points(function: Any) -> bytes:
    """Return bitcode that defines a kernel's functions by their names alone.

    Numba stores a kernel's whole bitcode, for others that inline it, and none does. When machine code is
    loaded it reads the names in it, and calls a null pointer where they are missing. Reading all of it took
    as long as linking the machine code.
    """
    names = (function.llvm_func_name, function.llvm_cpython_wrapper_name, function.llvm_cfunc_wrapper_name)
    text = "".join(f'define void @"{name}"() {{ ret void }}\n' for name in names)
    return bytes(llvmlite.binding.parse_assembly(text).as_bitcode())


def _without_globals(environment: Environment) -> Environment:
    """Return an environment of numba with the globals of a module that is imported anyway."""
    if not environment.globals["__name__"].startswith("numba."):
        return environment
    other = Environment({"__name__": Environment.__module__})
    other.consts[:] = environment.consts
    other.env_name = environment.env_name
    return other


class _KernelCache(FunctionCache):
    """Numba's cache, invalidated when the source of any kernel changes.

    Machine code is loaded without numba's registry of everything it can compile. That saves 60 modules and a
    quarter of a second at every start. Only the runtime functions that machine code calls are registered. A
    kernel that must be compiled loads the registry itself.
    """

    _impl_class = _MachineCode

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _sources())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        _register_runtime()
        overload = None
        # A cache that cannot be read is no error: the kernel is compiled.
        with self._guard_against_spurious_io_errors():
            overload = self._load_overload(sig, target_context)
        if overload is None:
            SLOW_STEPS.announce_compiling()
        return overload

    def is_empty(self) -> bool:
        """Return whether nothing was ever compiled."""
        return not Path(self._cache_file._index_path).exists()


class Kernel:
    """A compiled loop that loads its machine code at the first call. Only Python calls it; loops shared by
    kernels are plain ``njit``.

    One with ``interpreted_by`` is not compiled for few rows where there is no machine code yet: the lengths
    of these arguments bound its work.
    """

    every: ClassVar[list[Kernel]] = []
    """Those of the modules that are imported."""

    def __init__(
        self, function: Callable[..., Any], signature: Any, interpreted_by: tuple[int, ...] = ()
    ) -> None:
        functools.update_wrapper(self, function)
        self._signature = signature
        self.interpreted_by = interpreted_by
        # Rows, or bytes of texts, that it may still be interpreted for.
        self._interpreted_rows = _INTERPRETED_ROWS if interpreted_by else 0
        self._dispatcher = njit(function, nogil=True)
        self._run: Callable[..., Any] = self._first
        Kernel.every.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop. Raise TypeError for an argument that does not match the signature."""
        return self._run(*arguments)

    def load(self) -> bool:
        """Load the machine code from the cache, or compile it. Return whether it had to be compiled."""
        _refuse_without_compiler()
        # One thread compiles; numba's compiler is not thread-safe.
        with global_compiler_lock:
            # Another thread has loaded it while this one waited.
            if self._run != self._first:
                return False
            if (cache := self._cache) is not None:
                # The cache must be set before the compilation, which looks it up there.
                self._dispatcher._cache = cache
            began_ms = SLOW_STEPS.now_ms()
            self._dispatcher.compile(self._signature)
            # From here on other types raise TypeError instead of compiling another version.
            self._dispatcher.disable_compile()
            self._run = self._dispatcher
            compiled = not self._dispatcher.stats.cache_hits
            # loading from the cache takes milliseconds, and is no slow step
            if compiled:
                SLOW_STEPS.ended(SlowStep.KERNELS, began_ms)
            return compiled

    @functools.cached_property
    def _cache(self) -> _KernelCache | None:
        with suppress(RuntimeError):
            return _KernelCache(self._dispatcher.py_func)
        return None  # no directory can be written to: compiled in every process then

    @functools.cached_property
    def interpreted(self) -> Callable[..., Any]:
        """The loop as Python runs it."""
        return interpreted(self._dispatcher.py_func)

    def _first(self, *arguments: Any) -> Any:
        _refuse_without_compiler()
        if self._interpreted_rows > 0:
            self._interpreted_rows -= max(len(arguments[at]) for at in self.interpreted_by)
            if self._interpreted_rows >= 0 and (self._cache is None or self._cache.is_empty()):
                return self.interpreted(*arguments)
        self.load()
        return self._run(*arguments)


def _refuse_without_compiler() -> None:
    """Raise RUN-2926 where numba compiles nothing: Python would mix words of most loops otherwise."""
    if config.DISABLE_JIT:
        raise PenstockError(
            "RUN-2926",
            "NUMBA_DISABLE_JIT is set, and the engine's loops need machine code",
            hint="unset NUMBA_DISABLE_JIT in the environment of this program",
            kind=Kind.USER,
            sqlstate="55000",
        )


def kernel(signature: Any, *, interpreted_by: tuple[int, ...] = ()) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that compiles a loop for one signature. The loop runs without the GIL, except while
    it is interpreted: see ``Kernel``.
    """
    return lambda function: Kernel(function, signature, interpreted_by)


I64, U64, I32, U8, F64, VOID, BOOL = (
    types.int64,
    types.uint64,
    types.int32,
    types.uint8,
    types.float64,
    types.void,
    types.boolean,
)

IN_I64 = types.Array(types.int64, 1, "C", readonly=True)
IN_U64 = types.Array(types.uint64, 1, "C", readonly=True)
IN_I32 = types.Array(types.int32, 1, "C", readonly=True)
IN_U8 = types.Array(types.uint8, 1, "C", readonly=True)
IN_F64 = types.Array(types.float64, 1, "C", readonly=True)

OUT_I64 = types.int64[::1]
OUT_U64 = types.uint64[::1]
OUT_I32 = types.int32[::1]
OUT_U8 = types.uint8[::1]
OUT_F64 = types.float64[::1]

TABLE_I64 = types.int64[:, ::1]

SLOTS_I64 = types.Array(types.int64, 2, "A")
SLOTS_F64 = types.Array(types.float64, 2, "A")
