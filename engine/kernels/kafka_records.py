"""Records with timestamps and headers for librdkafka: one call of ``rd_kafka_produceva`` a record, by its
address, so that compiled code can be cached.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, kernel

_BYTE = ir.IntType(8)
_POINTER = _BYTE.as_pointer()
_WORD = ir.IntType(64)
# rd_kafka_vtype_t of rdkafka.h
_RKT, _PARTITION, _VALUE, _KEY, _MSGFLAGS, _TIMESTAMP, _HEADERS = 2, 3, 4, 5, 7, 8, 10
_COPY = 2
# rd_kafka_vu_t in words of 8 bytes: the kind, then a union of 64 bytes
_VU_WORDS = 9
_VUS = 7


def _called(result, arguments):
    """Return a code generator that calls a function by its address; NULL and pointers are numbers."""

    def generate(_context, builder, _signature, args):
        kind = ir.FunctionType(result, arguments)
        function = builder.inttoptr(args[0], kind.as_pointer())
        values = [
            builder.inttoptr(value, _POINTER) if wanted == _POINTER else value
            for value, wanted in zip(args[1:], arguments, strict=True)
        ]
        made = builder.call(function, values)
        if result == ir.VoidType():
            return cgutils.get_null_value(_WORD)
        return builder.ptrtoint(made, _WORD) if result == _POINTER else builder.sext(made, _WORD)

    return generate


@intrinsic
def _call_produce(_typing, function, client, arguments, count):
    """``rd_kafka_error_t *f(client, vus, count)``."""
    return I64(I64, I64, I64, I64), _called(_POINTER, [_POINTER, _POINTER, _WORD])


@intrinsic
def _call_new_headers(_typing, function, count):
    """``rd_kafka_headers_t *f(count)``."""
    return I64(I64, I64), _called(_POINTER, [_WORD])


@intrinsic
def _call_add_header(_typing, function, headers, name, name_size, value, value_size):
    """``rd_kafka_resp_err_t f(headers, name, size, value, size)``."""
    return I64(I64, I64, I64, I64, I64, I64), _called(
        ir.IntType(32), [_POINTER, _POINTER, _WORD, _POINTER, _WORD]
    )


@intrinsic
def _call_code(_typing, function, error):
    """``rd_kafka_resp_err_t f(error)``."""
    return I64(I64, I64), _called(ir.IntType(32), [_POINTER])


@intrinsic
def _call_void(_typing, function, pointer):
    """``void f(pointer)``; returns 0."""
    return types.int64(types.int64, types.int64), _called(ir.VoidType(), [_POINTER])


@kernel(
    I64(
        IN_I64,
        I64,
        I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        IN_I64,
        OUT_I64,
    )
)
def produce_each(
    functions,
    client,
    topic,
    values,
    value_sizes,
    keys,
    key_sizes,
    partitions,
    timestamps,
    header_bounds,
    names,
    name_sizes,
    header_values,
    header_value_sizes,
    errors,
):
    """Hand each record to librdkafka, which copies it; ``errors`` gets the code of each that it refused.
    Return how many it refused.

    ``functions``: addresses of rd_kafka_produceva, error_code, error_destroy, headers_new, header_add and
    headers_destroy. Addresses 0 are NULL. The headers of record i are ``header_bounds[i]`` up to
    ``header_bounds[i + 1]``; empty bounds: no record has headers.
    """
    arguments = np.zeros(_VU_WORDS * _VUS, np.int64)
    arguments[0], arguments[1] = _RKT, topic
    arguments[_VU_WORDS], arguments[2 * _VU_WORDS] = _PARTITION, _MSGFLAGS
    arguments[2 * _VU_WORDS + 1] = _COPY
    arguments[3 * _VU_WORDS], arguments[4 * _VU_WORDS] = _VALUE, _KEY
    arguments[5 * _VU_WORDS], arguments[6 * _VU_WORDS] = _TIMESTAMP, _HEADERS
    refused = 0
    for i in range(values.size):
        arguments[_VU_WORDS + 1] = partitions[i]
        arguments[3 * _VU_WORDS + 1], arguments[3 * _VU_WORDS + 2] = values[i], value_sizes[i]
        arguments[4 * _VU_WORDS + 1], arguments[4 * _VU_WORDS + 2] = keys[i], key_sizes[i]
        arguments[5 * _VU_WORDS + 1] = timestamps[i]
        count, headers = _VUS - 1, 0
        if header_bounds.size > 0 and header_bounds[i + 1] > header_bounds[i]:
            headers = _call_new_headers(functions[3], header_bounds[i + 1] - header_bounds[i])
            for at in range(header_bounds[i], header_bounds[i + 1]):
                _call_add_header(
                    functions[4],
                    headers,
                    names[at],
                    name_sizes[at],
                    header_values[at],
                    header_value_sizes[at],
                )
            arguments[6 * _VU_WORDS + 1] = headers
            count = _VUS
        error = _call_produce(functions[0], client, arguments.ctypes.data, count)
        errors[i] = 0
        if error != 0:
            errors[i] = _call_code(functions[1], error)
            _call_void(functions[2], error)
            refused += 1
            # librdkafka owns the headers of records it has taken, no others
            if headers != 0:
                _call_void(functions[5], headers)
    return refused
