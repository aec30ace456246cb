"""The places that scripts of bad inputs read and write: small servers of this process, tables that others
wrote, files. A script names them in braces, such as ``{http}``, and its answer shows these names again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from tests.harness.http_server import http_server
from tests.harness.kafka_broker import shared_topics
from tests.harness.object_stores import environment_of, localbucket_server, moto_server
from tests.harness.redis_server import redis_server
from tests.harness.schema_registry import schema_registry
from tests.harness.server_process import own_port
from tests.streaming.bad_inputs import answers
from tests.streaming.bad_inputs.others_tables import (
    write_delta_tables,
    write_files,
    write_iceberg_tables,
)

SECRET = "S3CR3T-of-bad-inputs"
SETTINGS = {
    "bounded.backend": "duckdb",
    "table.dml-sync": "true",
    "restart-strategy.type": "none",
    "execution.checkpointing.interval": "20 ms",
}
_INSIDE = re.compile(r"Traceback|object at 0x|<class|File \"|\bNone\b")
_MOVING = (
    (re.compile(r"-[0-9a-f]{11}-[0-9a-f]+-\d+"), "-#"),
    (re.compile(r"\b\d{12,}\b"), "#"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "#"),
    (re.compile(r"\.penstock\.probe-\d+-\d+"), ".penstock.probe-#"),
    # every 20 ms: which of them commits depends on the machine
    (re.compile(r"\bcheckpoint \d+\b"), "checkpoint #"),
)


class Places:
    """Names and what they stand for; ``use`` adds those of a topic."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.names = {"here": str(here), "secret": SECRET, "dead": f"127.0.0.1:{own_port()}"}

    def filled(self, text: str) -> str:
        """Return a script with what its names stand for."""
        for name, value in self.names.items():
            text = text.replace("{" + name + "}", value)
        return text

    def steady(self, text: str) -> str:
        """Return an answer with the names for what they stand for, and without what differs from run to run."""
        for name, value in sorted(self.names.items(), key=lambda item: -len(item[1])):
            text = text.replace(value, "{" + name + "}")
        for pattern, word in _MOVING:
            text = pattern.sub(word, text)
        return text


@contextmanager
def places_of(topic: str, here: Path) -> Iterator[Places]:
    """Start what a topic's scripts read and write; it ends with the block."""
    places = Places(here)
    with ExitStack() as stack:
        for start in STARTS.get(topic, ()):
            start(places, stack)
        yield places


def run_case(places: Places, text: str) -> str:
    """Run a case in a session of its own; return the first error's code, sentence and hint."""
    with penstock.connect(settings=SETTINGS) as connection:
        statements = connection.session.parse(places.filled(text))
        for statement in statements:
            try:
                result = connection.session.run(statement)
                if result.has_rows:
                    result.final_rows(300)
            except PenstockError as error:
                return places.steady(rendered(statement.locate(error)))
    return "accepted"


def rendered(error: PenstockError) -> str:
    """Return an error without the words of other people's libraries; check all that a user would see."""
    shown = error.render()
    assert SECRET not in shown, f"a secret is shown: {shown}"
    # the line of the statement and its caret are tested elsewhere; its length is that of a directory here
    lines = [line for line in shown.split("\n") if not line.startswith(("detail: ", "  "))]
    text = "\n".join(lines)
    assert not _INSIDE.search(text) and "Traceback" not in shown, f"it shows the inside: {shown}"
    return text


def _start_http(places: Places, stack: ExitStack) -> None:
    server = stack.enter_context(http_server())
    server.answer = answers.answer
    places.names["http"] = f"http://127.0.0.1:{server.port}"
    places.names["port"] = f"127.0.0.1:{server.port}"


def _start_registry(places: Places, stack: ExitStack) -> None:
    registry = stack.enter_context(schema_registry())
    registry.user_info = f"user:{SECRET}"
    other = {**answers.ORDER, "fields": [{"name": n, "type": "string"} for n in ("id", "name")]}
    ids = {
        "order": registry.add("orders-value", answers.ORDER),
        "tree": registry.add("trees-value", answers.TREE),
        "other": registry.add("others-value", other),
        "jsonschema": registry.add("documents-value", "{}", schemaType="JSON"),
    }
    answers.MESSAGES.update(answers.registry_messages(ids))
    places.names["registry"] = registry.url
    answers.write_descriptor(places.here / "shop.desc")


def _write_files(places: Places, stack: ExitStack) -> None:
    write_files(places.here)


def _write_delta_tables(places: Places, stack: ExitStack) -> None:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    write_delta_tables(places.here)


def _write_iceberg_tables(places: Places, stack: ExitStack) -> None:
    pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    places.names |= write_iceberg_tables(places.here)
    (places.here / "rows.txt").write_text("this is no database" * 100)


def _start_stores(places: Places, stack: ExitStack) -> None:
    moto, stale = moto_server(), localbucket_server()
    moto.client(moto.bucket("lake")).put("text/rows.parquet", b"this is no parquet")
    places.names |= {
        "s3": f"127.0.0.1:{moto.port}",
        "bucket": "lake",
        "localbucket": f"127.0.0.1:{stale.port}",
        "stale": stale.bucket("stale"),
    }
    # the state of jobs has its credentials from the environment
    stack.enter_context(environment_of(moto.environment))


def _start_kafka(places: Places, stack: ExitStack) -> None:
    topics = shared_topics()
    topic = topics.create()
    topics.produce(topic, [(None, b"no record")])
    places.names |= {"kafka": topics.bootstrap, "records": topic}


def _start_redis(places: Places, stack: ExitStack) -> None:
    (places.here / "redis").mkdir()
    server = stack.enter_context(redis_server(places.here / "redis"))
    server.client.set("text", "no stream")
    server.client.xadd("rows", {"value": "{}"})
    server.client.xadd("bad", {"value": "no record"})
    places.names["redis"] = server.url


Start = Callable[[Places, ExitStack], None]
STARTS: dict[str, tuple[Start, ...]] = {
    "files": (_write_files,),
    "delta": (_write_delta_tables,),
    "iceberg": (_write_iceberg_tables, _start_http),
    "http": (_start_http,),
    "messages": (_start_http, _start_registry),
    "kafka": (_start_kafka,),
    "redis": (_start_redis,),
    "storage": (_start_stores,),
}
