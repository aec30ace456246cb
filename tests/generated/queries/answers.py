"""Tables as multisets of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
