"""Causes and cures of errors: Kafka."""

from __future__ import annotations

KAFKA: dict[str, tuple[str, str]] = {
    "DAT-5100": ("The package of Kafka's client is not installed.", "Run: pip install 'penstock[kafka]'."),
    "DAT-5101": (
        "The Kafka client refuses a property of a table.",
        "Read the detail, and correct the option 'properties.*' it names.",
    ),
    "DAT-5102": (
        "No Kafka broker answers.",
        "Start the broker, or correct 'properties.bootstrap.servers' and 'properties.security.protocol'.",
    ),
    "DAT-5103": ("A topic or a partition does not exist.", "Correct 'topic', or create the topic first."),
    "DAT-5104": (
        "The broker does not permit this user to use a topic, a group or a transactional id.",
        "Ask for the right, or use another user.",
    ),
    "DAT-5105": (
        "The broker refuses the user or the password, or the TLS connection.",
        "Correct 'properties.sasl.*', 'properties.ssl.*' and 'properties.security.protocol'.",
    ),
    "DAT-5106": (
        "The offset to read next is not stored by the broker any more, or not yet.",
        "Begin without the job's state, or set 'properties.auto.offset.reset' and lose the messages between.",
    ),
    "DAT-5108": (
        "The group of a table has no offset of a partition.",
        "Set 'properties.auto.offset.reset' to 'earliest' or 'latest', or correct 'properties.group.id'.",
    ),
    "DAT-5109": (
        "A topic was deleted and created again, or has lost messages: the job has read further.",
        "Start the job without its state, or restore the topic.",
    ),
    "DAT-5107": ("A broker answers with another error.", "Read the detail, and the broker's log."),
    "DAT-5150": (
        "The library librdkafka is not part of the installed package, so that topics cannot be written.",
        "Install the wheel of confluent-kafka.",
    ),
    "DAT-5151": (
        "A transaction of a Kafka sink failed, or the brokers ended it for its time.",
        "Nothing is to be done: the job restarts and commits the rows unless they are there.",
    ),
    "DAT-5152": (
        "The brokers permit only shorter transactions.",
        "Lower 'properties.transaction.timeout.ms', or raise the broker's transaction.max.timeout.ms.",
    ),
    "DAT-5153": (
        "A row is larger than a record may be.",
        "Raise 'properties.message.max.bytes' and the topic's max.message.bytes, or skip such rows.",
    ),
}
