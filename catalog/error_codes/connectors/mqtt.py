"""Causes and cures of errors: MQTT."""

from __future__ import annotations

MQTT: dict[str, tuple[str, str]] = {
    "DAT-6000": ("The package of MQTT's client is not installed.", "Run: pip install 'penstock[mqtt]'."),
    "DAT-6001": ("An MQTT broker does not answer.", "Start the broker, or correct 'url' and 'timeout'."),
    "DAT-6002": (
        "An MQTT broker refuses a connection, a subscription or a message.",
        "Read the detail; correct 'username', 'password', 'topic' or 'version', or ask for the right.",
    ),
    "DAT-6003": (
        "Messages of an MQTT broker may be lost: it does not send again what came after the checkpoint.",
        "Begin without the job's state, or set 'mqtt.on-restore' = 'continue'.",
    ),
}
