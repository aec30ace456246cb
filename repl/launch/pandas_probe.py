"""Keeps pandas out of a process that does not use it: pyarrow imports pandas at the first value it
converts.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _Absent:
    """A module finder that reports pandas as not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        # Returning None would let the next finder import it.
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def settle() -> None:
    """Let pyarrow look for pandas once and find none; a later import of pandas, as PySpark's, works. Only
    for a process of our own: afterwards pyarrow no longer recognizes the missing values of pandas (``NA``,
    ``NaT``) in Python objects.
    """
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    # not sys.modules["pandas"] = None: compiled modules import that None as if it were the module
    sys.meta_path.insert(0, absent)
    try:
        # The first value that pyarrow converts makes its only attempt to import pandas.
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
