"""What brokers and librdkafka answer, as errors of penstock."""

from __future__ import annotations

from typing import Any

from penstock.catalog.errors import Kind, PenstockError

# Names of errors as librdkafka writes them, and the code, the sentence and the hint of each.
_BY_NAME: dict[str, tuple[str, str, str]] = {
    "UNKNOWN_TOPIC_OR_PART": (
        "DAT-5103",
        "{where}: there is no such topic or partition",
        "correct 'topic', or create the topic first",
    ),
    "TOPIC_AUTHORIZATION_FAILED": (
        "DAT-5104",
        "{where}: the broker does not permit this user to use the topic",
        "ask for the right, or use other 'properties.sasl.*'",
    ),
    "GROUP_AUTHORIZATION_FAILED": (
        "DAT-5104",
        "{where}: the broker does not permit this user to use the group",
        "ask for the right, or use another 'properties.group.id'",
    ),
    "CLUSTER_AUTHORIZATION_FAILED": (
        "DAT-5104",
        "{where}: the broker does not permit this user to do that",
        "ask for the right, or use other 'properties.sasl.*'",
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "DAT-5104",
        "{where}: the broker does not permit this user to use the transactional id",
        "ask for the right on the prefix of the option 'sink.transactional-id-prefix'",
    ),
    "SASL_AUTHENTICATION_FAILED": (
        "DAT-5105",
        "{where}: the broker refuses the user or the password",
        "correct 'properties.sasl.username' and 'properties.sasl.password'",
    ),
    "OFFSET_OUT_OF_RANGE": (
        "DAT-5106",
        "{where}: the next offset is not stored by the broker any more",
        "'properties.auto.offset.reset' = 'earliest' continues at the first offset there is",
    ),
}
_BY_NAME |= {
    "_UNKNOWN_TOPIC": _BY_NAME["UNKNOWN_TOPIC_OR_PART"],
    "_UNKNOWN_PARTITION": _BY_NAME["UNKNOWN_TOPIC_OR_PART"],
    "UNKNOWN_TOPIC_ID": _BY_NAME["UNKNOWN_TOPIC_OR_PART"],
    "TOPIC_EXCEPTION": _BY_NAME["UNKNOWN_TOPIC_OR_PART"],
    "_AUTHENTICATION": _BY_NAME["SASL_AUTHENTICATION_FAILED"],
    "_AUTO_OFFSET_RESET": _BY_NAME["OFFSET_OUT_OF_RANGE"],
    "_SSL": (
        "DAT-5105",
        "{where}: no TLS connection to the broker",
        "read the detail; correct 'properties.ssl.ca.location' where the broker's certificate is refused, "
        "'properties.ssl.certificate.location' and 'properties.ssl.key.location' where the client's is",
    ),
}
ALL_DOWN = "_ALL_BROKERS_DOWN"
# refused so often in a row, it is no accident; librdkafka tries every 50 ms and later every 10 s
_REFUSALS = 5
_REFUSING = frozenset(("_SSL", "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"))
_UNREACHABLE = frozenset(
    (
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "KAFKA_STORAGE_ERROR",
    )
)


def may_pass(name: str) -> bool:
    """Return whether an error (``rd_kafka_err2name``) is one of connections, which the client tries again."""
    return name in _UNREACHABLE


def refuses_connection(name: str, text: str) -> bool:
    """Return whether an error is one of TLS or SASL. Questions then get no answer, and do not say why."""
    # what a broker answers to the client's certificate comes after the handshake of TLS 1.3
    return name in _REFUSING or (
        "SSL routines" in text and ("alert" in text or "certificate verify failed" in text)
    )


class ConnectionErrors:
    """What a running client reports of its connections.

    An outage is waited for. A certificate or a password that is refused is none: while all brokers are lost,
    each attempt to connect has that end.
    """

    def __init__(self) -> None:
        self._outage: str | None = None
        self._refusal: tuple[str, str] | None = None
        self._is_down, self._refusals = False, 0

    def note(self, name: str, text: str) -> None:
        """Take an error of the client: its name as ``rd_kafka_err2name`` has it, and its text."""
        if name == ALL_DOWN:
            self._outage, self._is_down = text, True
        # "Disconnected": the broker went away in the middle of a handshake
        elif refuses_connection(name, text) and "Disconnected" not in text:
            self._refusal = ("_SSL" if may_pass(name) else name, text)
            self._refusals += 1
        else:
            self._refusals = 0

    def answered(self) -> None:
        """Forget the refusals: a broker has answered."""
        self._is_down, self._refusals = False, 0

    def take_outage(self) -> str | None:
        """Return what is wrong while no broker can be reached, once an outage."""
        outage, self._outage = self._outage, None
        return outage

    @property
    def refusal(self) -> tuple[str, str] | None:
        """The name and the text of a refusal that lasts, ``None`` where there is none."""
        return self._refusal if self._is_down and self._refusals >= _REFUSALS else None


def unreachable(bootstrap: str, seconds: float, detail: str = "") -> PenstockError:
    """Return the error of brokers that do not answer within a time."""
    return PenstockError(
        "DAT-5102",
        f"no broker of {bootstrap} answers within {seconds:g} s",
        detail=detail or None,
        hint="start the broker, or correct 'properties.bootstrap.servers' and 'properties.security.protocol'",
        kind=Kind.EXTERNAL,
        retriable=True,
    )


def broker_error(name: str, text: str, where: str) -> PenstockError:
    """Return the error of what a broker or librdkafka answered: its name, its text, and of what it was."""
    known = _BY_NAME.get(name)
    if known is not None:
        code, sentence, hint = known
        return PenstockError(code, sentence.format(where=where), detail=text, hint=hint, kind=Kind.EXTERNAL)
    return PenstockError(
        "DAT-5107",
        f"{where}: the broker answers {name}",
        detail=text,
        hint="read the detail; look into the broker's log",
        kind=Kind.EXTERNAL,
        retriable=may_pass(name),
    )


def kafka_exception(error: Any, where: str) -> PenstockError:
    """Return the error of a KafkaException, or of the KafkaError in it."""
    inner = error.args[0] if getattr(error, "args", None) and hasattr(error.args[0], "name") else error
    return broker_error(str(inner.name()), str(inner.str()), where)
