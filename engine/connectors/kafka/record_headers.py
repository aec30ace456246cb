"""Records with timestamps and headers: passed to librdkafka one by one, by a compiled loop."""

from __future__ import annotations

from ctypes import c_char_p, c_int, c_size_t, c_ssize_t, c_void_p
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.connectors.kafka.librdkafka import Librdkafka
from penstock.engine.connectors.kafka.producer_records import ANY_PARTITION, Records, places
from penstock.engine.kernels.kafka_records import produce_each

_FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("rd_kafka_produceva", c_void_p, (c_void_p, c_void_p, c_size_t)),
    ("rd_kafka_error_code", c_int, (c_void_p,)),
    ("rd_kafka_error_destroy", None, (c_void_p,)),
    ("rd_kafka_headers_new", c_void_p, (c_size_t,)),
    ("rd_kafka_header_add", c_int, (c_void_p, c_char_p, c_ssize_t, c_void_p, c_ssize_t)),
    ("rd_kafka_headers_destroy", None, (c_void_p,)),
)
_NONE = np.zeros(0, np.int64)


def enqueue_each(library: Librdkafka, client: int, topic: int, records: Records) -> np.ndarray:
    """Hand records to librdkafka, which copies them; return the code of each that it refused, 0 for the
    others.
    """
    library.bind(_FUNCTIONS)
    functions = np.array([library.address(name) for name, _, _ in _FUNCTIONS], np.int64)
    count = len(records)
    keys = places(pa.nulls(count, pa.binary()) if records.keys is None else records.keys)
    partitions = np.full(count, ANY_PARTITION) if records.partitions is None else records.partitions
    timestamps = np.zeros(count) if records.timestamps is None else records.timestamps
    errors = np.zeros(count, np.int64)
    bounds, names, values = _NONE, (_NONE, _NONE), (_NONE, _NONE)
    if records.headers is not None:
        headers = records.headers
        # NULL is no header: its bounds are equal
        sizes = np.diff(np.asarray(headers.offsets)[: count + 1].astype(np.int64))
        if headers.null_count:
            headers = pa.concat_arrays([headers.drop_null()])
            sizes[np.asarray(records.headers.is_null())] = 0
        first = headers.offsets[0].as_py() if len(headers) else 0
        bounds = first + np.concatenate(([0], np.cumsum(sizes)))
        names, values = places(headers.keys.cast(pa.binary())), places(headers.items.cast(pa.binary()))
    arrays = (*places(records.values), *keys, partitions, timestamps, bounds, *names, *values)
    produce_each(
        functions, client, topic, *(np.ascontiguousarray(array).astype(np.int64) for array in arrays), errors
    )
    return errors
