"""The loop that takes CopyData messages from libpq: one call empties what the connection has received.

Functions of libpq are called by their addresses, so that the compiled loop can be stored on disk.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.engine.kernels.kernel import I64, OUT_I64, OUT_U8, kernel

FULL, WAITS, ENDED, BROKEN = 1, 0, -1, -2
"""What the loop returns: buffer or list of messages is full; nothing more has arrived; the copy has ended;
the connection is broken.
"""

USED, COUNT, HELD, HELD_LENGTH, STATE_WORDS = 0, 1, 2, 3, 4
"""Words of the state: bytes used, messages, and the address and length of a message that did not fit."""

_INT, _POINTER = ir.IntType(32), ir.IntType(8).as_pointer()


def _called(builder, address, result, arguments):
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)


@intrinsic
def get_copy_data(typing, function, connection, cell):
    """Call ``int PQgetCopyData(PGconn *, char **, int async)`` without waiting."""

    def codegen(context, builder, signature, arguments):
        function_, connection_, cell_ = arguments
        given = [
            builder.inttoptr(connection_, _POINTER),
            builder.inttoptr(cell_, _POINTER),
            ir.Constant(_INT, 1),
        ]
        return builder.sext(_called(builder, function_, _INT, given), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def consume_input(typing, function, connection):
    """Call ``int PQconsumeInput(PGconn *)``: take what the socket has."""

    def codegen(context, builder, signature, arguments):
        given = [builder.inttoptr(arguments[1], _POINTER)]
        return builder.sext(_called(builder, arguments[0], _INT, given), ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def free_memory(typing, function, address):
    """Call ``void PQfreemem(void *)``."""

    def codegen(context, builder, signature, arguments):
        _called(builder, arguments[0], ir.VoidType(), [builder.inttoptr(arguments[1], _POINTER)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def copy_bytes(typing, to, source, length):
    """Copy bytes between addresses."""

    def codegen(context, builder, signature, arguments):
        to_, source_, length_ = arguments
        cgutils.raw_memcpy(
            builder, builder.inttoptr(to_, _POINTER), builder.inttoptr(source_, _POINTER), length_, 1
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@kernel(I64(I64, I64, I64, I64, OUT_I64, OUT_U8, OUT_I64, OUT_I64))
def drain_copy(get, free, consume, connection, cell, buffer, ends, state):
    """Append the messages that have arrived to ``buffer``, the end of each to ``ends``.

    ``cell`` is one word for libpq's result; ``state`` is STATE_WORDS words. A message that does not fit is
    kept in the state: the caller makes space and calls again.
    """
    asked = False
    while state[COUNT] < ends.size:
        if state[HELD] == 0:
            length = get_copy_data(get, connection, cell.ctypes.data)
            if length < 0:
                return length
            if length == 0:
                # twice nothing: the socket is empty
                if asked:
                    return WAITS
                if consume_input(consume, connection) == 0:
                    return BROKEN
                asked = True
                continue
            asked = False
            state[HELD], state[HELD_LENGTH] = cell[0], length
        if state[USED] + state[HELD_LENGTH] > buffer.size:
            return FULL
        copy_bytes(buffer.ctypes.data + state[USED], state[HELD], state[HELD_LENGTH])
        free_memory(free, state[HELD])
        state[HELD] = 0
        state[USED] += state[HELD_LENGTH]
        ends[state[COUNT]] = state[USED]
        state[COUNT] += 1
    return FULL
