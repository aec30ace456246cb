"""What brokers answer, as codes and sentences."""

from __future__ import annotations

import pytest

from penstock.engine.connectors.kafka.broker_errors import (
    ALL_DOWN,
    ConnectionErrors,
    broker_error,
    may_pass,
    refuses_connection,
    unreachable,
)


def test_each_answer_has_its_code() -> None:
    codes = {
        "UNKNOWN_TOPIC_OR_PART": "DAT-5103",
        "_UNKNOWN_TOPIC": "DAT-5103",
        "TOPIC_AUTHORIZATION_FAILED": "DAT-5104",
        "_AUTHENTICATION": "DAT-5105",
        "_AUTO_OFFSET_RESET": "DAT-5106",
        "INVALID_MSG": "DAT-5107",
    }
    for name, code in codes.items():
        error = broker_error(name, "as the broker says", "topic t")
        assert (error.code, error.detail) == (code, "as the broker says")
        assert error.message.startswith("topic t")
        assert error.hint


def test_what_is_of_connections_may_pass() -> None:
    assert may_pass("_TRANSPORT")
    assert not may_pass("TOPIC_AUTHORIZATION_FAILED")
    assert broker_error("NETWORK_EXCEPTION", "", "topic t").retriable
    assert "host:9092 answers within 30 s" in unreachable("host:9092", 30.0).message


def test_a_refused_certificate_is_known_by_its_text() -> None:
    assert refuses_connection("_SSL", "")
    assert refuses_connection("_TRANSPORT", "error:0A00045C:SSL routines::tlsv13 alert certificate required")
    assert not refuses_connection("_TRANSPORT", "SSL connection closed by peer")


REFUSED = ("_SSL", "SSL handshake failed: certificate verify failed")


def test_a_refusal_that_lasts_is_no_outage() -> None:
    errors = ConnectionErrors()
    errors.note(ALL_DOWN, "1/1 brokers are down")
    for _ in range(4):
        errors.note(*REFUSED)
        assert errors.refusal is None
    errors.note(*REFUSED)
    assert errors.refusal == REFUSED
    assert errors.take_outage() == "1/1 brokers are down" and errors.take_outage() is None
    errors.answered()
    assert errors.refusal is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_SSL", "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"),
        ("_TRANSPORT", "Connect to ipv4#127.0.0.1:9092 failed: Connection refused"),
    ],
)
def test_a_broker_that_goes_away_in_a_handshake_refuses_nothing(name: str, text: str) -> None:
    errors = ConnectionErrors()
    errors.note(ALL_DOWN, "down")
    for _ in range(20):
        errors.note(*REFUSED)
        errors.note(name, text)
    assert errors.refusal is None


def test_one_broker_of_several_that_refuses_is_no_end() -> None:
    errors = ConnectionErrors()
    for _ in range(20):
        errors.note(*REFUSED)
    assert errors.refusal is None
