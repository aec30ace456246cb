"""Properties of clients, from the options of tables, and what they do over a wire with TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
import trustme

import penstock
from penstock.catalog.connectors.kafka_properties import CONSUMER_PROPERTIES
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.kafka import native_producer, topic_partitions
from penstock.engine.connectors.kafka.client_properties import client_properties
from penstock.engine.connectors.kafka.sink import KafkaSink
from tests.harness.kafka_broker import KafkaTopics, new_broker
from tests.harness.kafka_proxy import BEHIND, KafkaProxy
from tests.harness.patience import PATIENCE_S, await_that


def test_properties_have_the_names_and_words_of_librdkafka(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from penstock.catalog.connectors import kafka, registry

    monkeypatch.setitem(registry.CONNECTORS, "kafka", kafka.KAFKA)
    schema = Schema((Field("a", BIGINT),))
    options = {
        "connector": "kafka",
        "topic": "t",
        "format": "json",
        "properties.bootstrap.servers": "h:9092",
        "properties.sasl.mechanism": "scram-sha-512",
        "properties.sasl.password": "s3cret word",
        "properties.enable.ssl.certificate.verification": "FALSE",
        "properties.isolation.level": "read_uncommitted",
    }
    table = CatalogTable("t", schema, schema, options)
    assert client_properties(table) == {
        "bootstrap.servers": "h:9092",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.password": "s3cret word",
        "enable.ssl.certificate.verification": "false",
        "log_level": "0",
    }
    assert client_properties(table, *CONSUMER_PROPERTIES)["isolation.level"] == "read_uncommitted"


class SecuredBroker:
    """A broker that speaks TLS and wants a certificate of its clients; ``directory`` has the files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self._path("ca"))
        trustme.CA().cert_pem.write_to_path(self._path("other-ca"))
        client = authority.issue_cert("client@penstock")
        client.private_key_pem.write_to_path(self._path("key"))
        client.cert_chain_pems[0].write_to_path(self._path("certificate"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        self._broker = new_broker(BEHIND)
        self.topics = KafkaTopics(self._broker.bootstrap)
        self._proxy = KafkaProxy(self._broker, context)

    def _path(self, name: str) -> str:
        return str(self._directory / f"{name}.pem")

    def options(self, topic: str, mechanism: str = "", **files: str) -> str:
        """Return the options of a table; ``mechanism``: of SASL; ``files``: ca, certificate, key."""
        given = self.given(topic, mechanism, **files)
        return ", ".join(f"'{key}' = '{text}'" for key, text in given.items())

    def given(self, topic: str, mechanism: str = "", **files: str) -> dict[str, str]:
        """Return the same as a dictionary."""
        options = {
            "connector": "kafka",
            "topic": topic,
            "format": "json",
            "properties.bootstrap.servers": self._proxy.bootstrap,
            "properties.security.protocol": "ssl",
            "scan.bounded.mode": "latest-offset",
        } | {f"properties.ssl.{kind}.location": self._path(name) for kind, name in files.items()}
        if mechanism:
            options |= {
                "properties.security.protocol": "sasl_ssl",
                "properties.sasl.mechanism": mechanism,
                "properties.sasl.username": "penstock",
                "properties.sasl.password": "a secret",
            }
        return options

    @contextmanager
    def another_certificate(self) -> Iterator[None]:
        """Show a certificate of another authority to all who connect, and drop the connections there are."""
        trusted, other = self._proxy.tls, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(other)
        self._proxy.tls = other
        self._proxy.disconnect()
        try:
            yield
        finally:
            self._proxy.tls = trusted

    def close(self) -> None:
        self._proxy.close()
        self._broker.kill()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    made = SecuredBroker(tmp_path_factory.mktemp("certificates"))
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_partitions, "FIRST_S", 0.7)
    monkeypatch.setattr(native_producer, "FIRST_MS", 700)


@pytest.mark.parametrize("mechanism", ["", "PLAIN"])
def test_rows_are_written_and_read_over_tls_with_the_certificate_of_a_client(
    secured: SecuredBroker, tmp_path: Path, mechanism: str
) -> None:
    topic = secured.topics.create()
    options = secured.options(topic, mechanism, ca="ca", certificate="certificate", key="key")
    with penstock.connect(settings={"execution.checkpointing.dir": str(tmp_path)}) as db:
        db.execute(f"CREATE TABLE t (a BIGINT) WITH ({options})")
        # a transaction of the sink, and its group
        db.execute("INSERT INTO t SELECT * FROM (VALUES (1), (2)) AS v (a)")
        assert sorted(db.execute("SELECT a FROM t").fetchall()) == [(1,), (2,)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"ca": "other-ca", "certificate": "certificate", "key": "key"}, "DAT-5105.*(?s:.*)certificate"),
        ({"certificate": "certificate", "key": "key"}, "DAT-5105.*(?s:.*)certificate"),
        # the broker of the tests has no SCRAM, and what it answers is none
        (
            {"mechanism": "SCRAM-SHA-256", "ca": "ca", "certificate": "certificate", "key": "key"},
            "DAT-5105.*(?s:.*)SASL",
        ),
        ({"ca": "ca"}, "DAT-5105.*(?s:.*)alert certificate required"),
    ],
)
@pytest.mark.parametrize("statement", ["SELECT a FROM t", "INSERT INTO t VALUES (1)"])
def test_connections_that_tls_refuses_have_a_sentence(
    secured: SecuredBroker, files: dict[str, str], said: str, statement: str
) -> None:
    options = secured.options(secured.topics.create(), **files)
    with penstock.connect() as db:
        db.execute(f"CREATE TABLE t (a BIGINT) WITH ({options})")
        with pytest.raises(penstock.Error, match=said):
            db.execute(statement).fetchall()


def test_a_certificate_that_is_refused_while_a_job_runs_ends_it_with_a_sentence(
    secured: SecuredBroker,
) -> None:
    trusted = {"ca": "ca", "certificate": "certificate", "key": "key"}
    source, sink = secured.topics.create(), secured.topics.create()
    endless = secured.options(source, **trusted).replace("latest-offset", "unbounded")
    endless += ", 'scan.startup.mode' = 'earliest-offset'"
    with penstock.connect(settings={"table.dml-sync": "false"}) as db:
        db.execute(f"CREATE TABLE i (a BIGINT) WITH ({endless})")
        db.execute(f"CREATE TABLE o (a BIGINT) WITH ({secured.options(sink, **trusted)})")
        job = db.execute("INSERT INTO o SELECT a FROM i").job
        assert job is not None
        secured.topics.produce(source, [(None, b'{"a": 1}')])
        await_that(lambda: bool(secured.topics.read(sink)), "a row")
        with secured.another_certificate():
            assert job.wait(PATIENCE_S)
        assert job.error is not None and job.error.code == "DAT-5105"
        assert "certificate" in str(job.error.detail)


def test_a_certificate_that_is_refused_while_a_sink_writes_ends_it_with_a_sentence(
    secured: SecuredBroker,
) -> None:
    schema = Schema((Field("a", BIGINT),))
    given = secured.given(secured.topics.create(), ca="ca", certificate="certificate", key="key")
    # five refusals end it: by default they take a minute
    given["properties.reconnect.backoff.max.ms"] = "100"
    table = CatalogTable("o", schema, schema, given)
    sink = KafkaSink(SinkRequest(table, schema, None, "s", "j", 0, 1, Services(), owner="o"))
    rows = Batch(pa.record_batch({"a": [1]}))
    sink.write(rows)
    sink.prepare(1)
    with secured.another_certificate():
        sink.write(rows)
        with pytest.raises(PenstockError, match=r"DAT-5105(?s:.*)certificate"):
            sink.prepare(2)
    sink.close()
