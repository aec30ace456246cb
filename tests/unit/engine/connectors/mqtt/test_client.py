"""The connection to a broker: one that goes away, a session that is gone, users and TLS."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import trustme

from penstock.catalog.errors import PenstockError
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.mqtt_broker import mqtt_broker
from tests.harness.patience import await_that
from tests.unit.engine.connectors.mqtt.topics import add, opened, taken

pytestmark = pytest.mark.xdist_group("mqtt")

SELECT_LIMIT = 1024


def test_a_broker_that_goes_away(tmp_path: Path) -> None:
    counted = OperatorMetrics()
    with mqtt_broker(tmp_path) as own:
        strict, lenient = opened(own, "a"), opened(own, "b", None, counted, **{"mqtt.on-restore": "continue"})
        add(own, "a", 1)
        add(own, "b", 1)
        assert taken(strict, 1) == [1] and taken(lenient, 1) == [1]
        own.kill()
        with pytest.raises(PenstockError, match=r"DAT-6001.*does not answer") as raised:
            opened(own, "a")
        assert raised.value.retriable
        own.start()
        await_that(lambda: counted.counters.get("sessions_lost"))
        add(own, "b", 2)
        assert taken(lenient, 1) == [2] and counted.counters["mqtt_reconnects"] >= 1
        # the broker has forgotten the session: what came meanwhile is lost, and that is not silent
        position = strict.position()
        with pytest.raises(PenstockError, match=r"DAT-6003.*topic a: messages after number 1 may be lost"):
            taken(strict, 1)
        with pytest.raises(PenstockError, match=r"DAT-6003.*no session"):
            opened(own, "a", position)
        strict.close()
        lenient.close()


def test_a_password_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    with mqtt_broker(tmp_path, users={"ann": "s3cret"}) as own:
        with pytest.raises(PenstockError, match=r"DAT-600[12]"):
            opened(own, "a", timeout="500 ms")
        with pytest.raises(PenstockError, match=r"DAT-600[12]") as raised:
            opened(own, "a", username="ann", password="wr0ng", timeout="500 ms")
        assert "wr0ng" not in str(raised.value)
        opened(own, "a", username="ann", password="s3cret").close()


def test_a_broker_with_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = tuple(tmp_path / f"{name}.pem" for name in ("ca", "cert", "key"))
    authority.cert_pem.write_to_path(files[0])
    issued.cert_chain_pems[0].write_to_path(files[1])
    issued.private_key_pem.write_to_path(files[2])
    trusted = {"tls.ca-file": str(files[0])}
    with mqtt_broker(tmp_path / "broker", tls=(files[0], files[1], files[2])) as own:
        with pytest.raises(PenstockError, match=r"DAT-6002.*refuses") as raised:
            opened(own, "a")
        assert "ertificate" in str(raised.value.detail)
        with pytest.raises(PenstockError, match=r"DAT-6002.*refuses"):
            opened(own, "a", **{"tls.ca-file": str(tmp_path / "nothing")})
        opened(own, "a", **trusted).close()


def test_a_broker_of_another_version(tmp_path: Path) -> None:
    with mqtt_broker(tmp_path) as own, pytest.raises(PenstockError, match=r"DAT-600[12]"):
        opened(own, "a", url=own.url_5, timeout="500 ms")


def test_a_reader_opened_beside_many_files(tmp_path: Path) -> None:
    """Its connection has a number from 1024 on, which ``select()`` refuses."""
    with mqtt_broker(tmp_path / "own") as own:
        with contextlib.ExitStack() as files:
            while files.enter_context(open(os.devnull)).fileno() < SELECT_LIMIT:
                pass
            reader = opened(own, "many")
        add(own, "many", 1, 2)
        assert taken(reader, 2) == [1, 2]
        reader.close()
