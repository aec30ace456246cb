"""Keeps pandas out of a process that has no use for it: pyarrow imports it, where it is installed, at the
first value it converts.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _Absent:
    """Says of pandas that it is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def settle() -> None:
    """Let pyarrow look for pandas once and find none; whoever imports pandas after that, as PySpark does,
    gets it.

    Only for a process of our own: pyarrow no longer knows the missing values of pandas (``NA``, ``NaT``) in
    Python objects it is given afterwards.
    """
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    # not sys.modules["pandas"] = None: compiled modules import that None as if it were the module
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
