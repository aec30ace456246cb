"""Messages of librdkafka as columns: payloads and keys are copied out of ``rd_kafka_message_t`` structures,
by address, and the structures are destroyed.

Functions of the library are called by their addresses, so that compiled code can be cached.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I32, OUT_I64, OUT_U8, kernel

# Offsets of the fields of rd_kafka_message_t (rdkafka.h), a public structure of 64-bit machines.
_ERR, _PARTITION, _PAYLOAD, _LEN, _KEY, _KEY_LEN, _OFFSET = 0, 16, 24, 32, 40, 48, 56
_BYTE = ir.IntType(8)
_POINTER = _BYTE.as_pointer()

# Names in the header arrays of one message that are looked at for repetition.
MAX_HEADERS = 1024


def _called(result, arguments):
    """Return a code generator that calls a function by its address, with these LLVM types."""

    def generate(_context, builder, _signature, args):
        kind = ir.FunctionType(result, arguments)
        function = builder.inttoptr(args[0], kind.as_pointer())
        given = [
            builder.inttoptr(value, _POINTER) if wanted == _POINTER else value
            for value, wanted in zip(args[1:], arguments, strict=True)
        ]
        made = builder.call(function, given)
        if result == ir.VoidType():
            return cgutils.get_null_value(ir.IntType(64))
        return made if result == ir.IntType(64) else builder.sext(made, ir.IntType(64))

    return generate


@intrinsic
def _call_void(_typing, function, message):
    """``void f(message)``; returns 0."""
    return types.int64(types.int64, types.int64), _called(ir.VoidType(), [_POINTER])


@intrinsic
def _call_epoch(_typing, function, message):
    """``int32_t f(message)``."""
    return types.int64(types.int64, types.int64), _called(ir.IntType(32), [_POINTER])


@intrinsic
def _call_timestamp(_typing, function, message, out):
    """``int64_t f(message, int32_t *)``."""
    return types.int64(types.int64, types.int64, types.int64), _called(ir.IntType(64), [_POINTER, _POINTER])


@intrinsic
def _call_headers(_typing, function, message, out):
    """``int32_t f(message, headers **)``."""
    return types.int64(types.int64, types.int64, types.int64), _called(ir.IntType(32), [_POINTER, _POINTER])


@intrinsic
def _call_header(_typing, function, headers, index, name, value, size):
    """``int32_t f(headers, size_t, char **, void **, size_t *)``."""
    six = (types.int64,) * 6
    return types.int64(*six), _called(
        ir.IntType(32), [_POINTER, ir.IntType(64), _POINTER, _POINTER, _POINTER]
    )


@intrinsic
def _load64(_typing, address):
    """The 8 bytes at an address."""

    def generate(_context, builder, _signature, args):
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), generate


@intrinsic
def _load32(_typing, address):
    """The 4 bytes at an address."""

    def generate(_context, builder, _signature, args):
        word = builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()))
        return builder.sext(word, ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def _load8(_typing, address):
    """The byte at an address."""

    def generate(_context, builder, _signature, args):
        return builder.zext(builder.load(builder.inttoptr(args[0], _POINTER)), ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def _copy(_typing, to, source, size):
    """Copy bytes from one address to another; returns 0."""

    def generate(_context, builder, _signature, args):
        cgutils.raw_memcpy(
            builder,
            builder.inttoptr(args[0], _POINTER),
            builder.inttoptr(args[1], _POINTER),
            args[2],
            ir.Constant(ir.IntType(64), 1),
        )
        return cgutils.get_null_value(ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), generate


@kernel(I64(IN_I64, I64, I64, I64, OUT_I64))
def measure_messages(messages, begin, end, most_bytes, sizes):
    """Return how many messages from ``begin`` are rows. They end at the first that is an error, or where
    values
    and keys have at most ``most_bytes`` each (one message may have more). ``sizes`` gets the bytes of values
    and of keys.
    """
    values, keys = 0, 0
    for i in range(begin, end):
        message = messages[i]
        if _load32(message + _ERR) != 0:
            break
        value, key = _load64(message + _LEN), _load64(message + _KEY_LEN)
        if i > begin and (values + value > most_bytes or keys + key > most_bytes):
            sizes[0], sizes[1] = values, keys
            return i - begin
        values += value
        keys += key
        sizes[2] = i + 1 - begin
    sizes[0], sizes[1] = values, keys
    return sizes[2]


@kernel(I64(IN_I64, I64, I64, IN_I64, OUT_I32, OUT_U8, OUT_U8, OUT_I32, OUT_U8, OUT_U8, OUT_I64, OUT_I64))
def copy_messages(
    messages, begin, count, functions, ends, data, valid, key_ends, key_data, key_valid, facts, scratch
):
    """Copy so many messages into columns. Returns the number of values that are NULL, times 2**32, and of
    keys.

    ``functions``: addresses of rd_kafka_message_timestamp and rd_kafka_message_leader_epoch; 0: not asked
    for. ``ends`` and ``key_ends`` have an entry more than messages. ``facts``: four columns one after
    another: offset, timestamp, kind of timestamp, leader epoch. ``scratch``: one word.
    """
    null_values, null_keys = 0, 0
    at, key_at = 0, 0
    to, key_to, word = data.ctypes.data, key_data.ctypes.data, scratch.ctypes.data
    ends[0] = 0
    key_ends[0] = 0
    for i in range(count):
        message = messages[begin + i]
        payload, size = _load64(message + _PAYLOAD), _load64(message + _LEN)
        valid[i] = payload != 0
        null_values += payload == 0
        if size:
            _copy(to + at, payload, size)
        at += size
        ends[i + 1] = at
        key, size = _load64(message + _KEY), _load64(message + _KEY_LEN)
        key_valid[i] = key != 0
        null_keys += key == 0
        if size and key_data.size:
            _copy(key_to + key_at, key, size)
            key_at += size
        key_ends[i + 1] = key_at
        facts[i] = _load64(message + _OFFSET)
        if functions[0]:
            facts[count + i] = _call_timestamp(functions[0], message, word)
            facts[2 * count + i] = _load32(word)
        if functions[1]:
            facts[3 * count + i] = _call_epoch(functions[1], message)
    return (null_values << 32) + null_keys


@njit(nogil=True)
def _same_name(left, right):
    """Whether two texts that end in a zero byte are equal."""
    at = 0
    while True:
        letter = _load8(left + at)
        if letter != _load8(right + at):
            return False
        if letter == 0:
            return True
        at += 1


@njit(nogil=True)
def _length(name):
    at = 0
    while _load8(name + at):
        at += 1
    return at


@njit(nogil=True)
def _headers_of(message, functions, word, fields):
    """Write name, value and size of each header of a message into ``fields``; return their number. Of headers
    of one name the last stays.
    """
    if _call_headers(functions[0], message, word) != 0:
        return 0
    headers = _load64(word)
    count = 0
    for index in range(MAX_HEADERS):
        if _call_header(functions[1], headers, index, word, word + 8, word + 16) != 0:
            break
        name = _load64(word)
        place = count
        for earlier in range(count):
            if _same_name(fields[3 * earlier], name):
                place = earlier
        fields[3 * place] = name
        fields[3 * place + 1] = _load64(word + 8)
        fields[3 * place + 2] = _load64(word + 16)
        count = max(count, place + 1)
    return count


@kernel(I64(IN_I64, I64, I64, IN_I64, OUT_I64, OUT_I64))
def measure_headers(messages, begin, count, functions, sizes, scratch):
    """Return the number of headers of so many messages; ``sizes`` gets the bytes of names and of values.
    ``functions``: addresses of rd_kafka_message_headers and rd_kafka_header_get_all. ``scratch``: three
    words.
    """
    fields = np.empty(3 * MAX_HEADERS, np.int64)
    found, names, values = 0, 0, 0
    for i in range(count):
        here = _headers_of(messages[begin + i], functions, scratch.ctypes.data, fields)
        for index in range(here):
            names += _length(fields[3 * index])
            values += fields[3 * index + 2]
        found += here
    sizes[0], sizes[1] = names, values
    return found


@kernel(I64(IN_I64, I64, I64, IN_I64, OUT_I32, OUT_I32, OUT_U8, OUT_I32, OUT_U8, OUT_U8, OUT_I64))
def copy_headers(
    messages, begin, count, functions, ends, name_ends, names, value_ends, values, valid, scratch
):
    """Copy the headers of so many messages as a column of maps: ``ends`` per message, the others per header.
    Returns the number of values that are NULL.
    """
    fields = np.empty(3 * MAX_HEADERS, np.int64)
    found, name_at, value_at, nulls = 0, 0, 0, 0
    ends[0] = 0
    name_ends[0] = 0
    value_ends[0] = 0
    for i in range(count):
        here = _headers_of(messages[begin + i], functions, scratch.ctypes.data, fields)
        for index in range(here):
            name, value, size = fields[3 * index], fields[3 * index + 1], fields[3 * index + 2]
            length = _length(name)
            _copy(names.ctypes.data + name_at, name, length)
            name_at += length
            if size:
                _copy(values.ctypes.data + value_at, value, size)
                value_at += size
            valid[found] = value != 0
            nulls += value == 0
            found += 1
            name_ends[found] = name_at
            value_ends[found] = value_at
        ends[i + 1] = found
    return nulls


@kernel(I64(IN_I64, I64, I64, I64))
def destroy_messages(messages, begin, end, destroy):
    """Destroy messages ``begin`` .. ``end``; ``destroy`` is the address of rd_kafka_message_destroy."""
    for i in range(begin, end):
        _call_void(destroy, messages[i])
    return end - begin
