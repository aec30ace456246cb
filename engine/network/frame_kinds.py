"""What a frame is about. 1-63 belong to the data plane; the control connection numbers its messages from
``FIRST_CONTROL``.
"""

from __future__ import annotations

HELLO = 1  # who connects: token, job, epoch, attempt, name
WELCOME = 2  # the same from the side that accepts
REFUSED = 3  # why the hello was not accepted; the connection ends
PING = 4  # nothing to say, but alive
GOODBYE = 5  # leaves on purpose
OPEN = 8  # the frame's channel number stands for this key from now on
CREDIT = 9  # the consumer takes so many more elements
SCHEMA = 16  # the schema of the batches that follow on this channel
BATCH = 17
WATERMARK = 18
IDLE = 19
BARRIER = 20
END_OF_INPUT = 21
LATENCY_MARKER = 22

FIRST_CONTROL = 64
LAST_CONTROL = 255

OVERTAKES = 1  # flag of BARRIER: it has gone before what was not sent yet, and needed no credit
