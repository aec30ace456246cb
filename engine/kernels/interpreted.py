"""Kernels as Python runs them: for the few rows of a first query, which compiling would make wait."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel's loop as Python runs it, with the compiled functions that it calls.

    Numbers are numpy's, which wrap around as machine words do; of two kinds they are not mixed as compiled
    code mixes them. So a test compares each kernel that is run so with its machine code.
    """
    plain = _plain(function, {})

    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return plain(*arguments)

    return run


def _plain(function: Any, done: dict[Any, FunctionType]) -> FunctionType:
    if function not in done:
        names = dict(function.__globals__)
        done[function] = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        for name in function.__code__.co_names:
            if isinstance(called := names.get(name), Dispatcher):
                names[name] = _plain(called.py_func, done)
            elif isinstance(called, _Intrinsic):
                names[name] = _INTRINSICS[name]
    return done[function]


def _load_word(data: np.ndarray, at: int) -> np.uint64:
    return np.uint64(data[at : at + 8].view(np.uint64)[0])


def _load_half(data: np.ndarray, at: int) -> np.uint64:
    return np.uint64(data[at : at + 4].view(np.uint32)[0])


def _pointer(array: np.ndarray) -> np.ndarray:
    return array


def _copy_span(out: np.ndarray, at: int, data: np.ndarray, start: int, count: int) -> None:
    out[at : at + count] = data[start : start + count]


_INTRINSICS = {
    "load_word": _load_word,
    "load_half": _load_half,
    "pointer": _pointer,
    "copy_span": _copy_span,
}
