"""Causes and cures of errors: NATS."""

from __future__ import annotations

NATS: dict[str, tuple[str, str]] = {
    "DAT-5900": ("The package of NATS' client is not installed.", "Run: pip install 'penstock[nats]'."),
    "DAT-5901": ("A NATS server does not answer.", "Start the server, or correct 'url' and 'timeout'."),
    "DAT-5902": (
        "A NATS server refuses a request.",
        "Read the detail; correct the user, the password or the token, or ask for the right.",
    ),
    "DAT-5903": (
        "The server has deleted messages of a stream that were not read.",
        "Keep more messages in the stream, or set 'scan.on-trimmed' = 'skip' and lose them.",
    ),
    "DAT-5904": (
        "A stream of JetStream is not there, lacks the subject, was made again, or deletes what is read.",
        "Correct 'stream' or 'subject', or make a stream whose retention is 'limits'.",
    ),
    "DAT-5905": (
        "A stream of JetStream cannot take rows and the epoch of a checkpoint in one batch.",
        "Set 'stream.create' = 'true', or let 'sink.delivery-guarantee' be at-least-once.",
    ),
    "DAT-5906": (
        "A stream of JetStream has dropped the note of the last epoch: rows might be written twice.",
        "Raise the limits of the stream; begin without the job's state, or write at least once.",
    ),
}
