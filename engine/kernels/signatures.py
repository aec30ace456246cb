"""The array types kernels are compiled for: ``IN_*`` may be read-only (Arrow memory), ``OUT_*`` is
written, ``SLOTS_*`` are parts of a wider one.
"""

from __future__ import annotations

from numba import types

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
