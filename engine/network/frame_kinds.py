"""The kinds of frames. 1-63 belong to the data plane; the control connection numbers its messages from
``FIRST_CONTROL``.
"""

from __future__ import annotations

HELLO = 1  # the identity of the side that connects: token, job, epoch, attempt, name
WELCOME = 2  # the same from the side that accepts
REFUSED = 3  # why the hello was not accepted; the connection ends
PING = 4  # a heartbeat of a side that has nothing to send
GOODBYE = 5  # the side closes on purpose, not after a failure
OPEN = 8  # the frame's channel number identifies this key from now on
CREDIT = 9  # the producer may send so many more elements and bytes of rows
SCHEMA = 16  # the schema of the batches that follow on this channel
# 16 to 22: elements of a channel, which need credit
BATCH = 17
WATERMARK = 18
IDLE = 19
BARRIER = 20
END_OF_INPUT = 21
LATENCY_MARKER = 22

FIRST_CONTROL = 64
LAST_CONTROL = 255

OVERTAKES = 1  # flag of BARRIER: it was sent before buffered elements, and without credit
