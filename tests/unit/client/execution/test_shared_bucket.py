"""Programs that share nothing but a bucket: jobs of one prefix, jobs of one name, one table of them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import penstock
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.locations import folders_in
from tests.harness.object_stores import ObjectServer, environment_of, moto_server
from tests.harness.patience import PATIENCE_S

pytestmark = pytest.mark.xdist_group("moto")

BUCKET = "shared-by-programs"
ROWS = 10


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    found = moto_server()
    found.bucket(BUCKET)
    with environment_of(found.environment):
        yield found


def program(table: str, prefix: str, name: str, who: str) -> penstock.Connection:
    """Start a job with its state below a prefix of the bucket; return its connection."""
    connection = penstock.connect()
    for setting, value in (
        ("execution.checkpointing.dir", f"s3://{BUCKET}/{prefix}"),
        ("execution.checkpointing.interval", "100 ms"),
        ("pipeline.name", name),
        ("table.dml-sync", "false"),
    ):
        connection.execute(f"SET '{setting}' = '{value}'")
    connection.execute(table)
    connection.execute(
        "CREATE TABLE n (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
        f"'fields.id.start' = '1', 'fields.id.end' = '{ROWS}')"
    )
    connection.execute(f"INSERT INTO shared SELECT '{who}', id FROM n")
    return connection


def table_of(server: ObjectServer, kind: str) -> str:
    options = {"connector": "filesystem", "path": f"s3://{BUCKET}/files", "format": "parquet"}
    if kind == "delta":
        pytest.importorskip("deltalake", reason="the extra delta is not installed")
        settings = {f"storage.aws_{key}": value for key, value in server.options.items()}
        options = {"connector": "delta", "table-path": f"s3://{BUCKET}/delta", **settings}
        options["storage.aws_allow_http"] = "true"
    words = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE shared (who STRING, id BIGINT) WITH ({words})"


@pytest.mark.parametrize("kind", ["filesystem", "delta"])
def test_jobs_of_several_programs_write_one_table(server: ObjectServer, kind: str) -> None:
    table = table_of(server, kind)
    # of one prefix, and of one name
    jobs = [("jobs", "one"), ("jobs", "two"), ("elsewhere", "one")]
    programs = [program(table, f"{kind}-{prefix}", name, f"{prefix}/{name}") for prefix, name in jobs]
    for connection in programs:
        for job in connection.jobs():
            assert job.wait(PATIENCE_S) and job.error is None, job.error
        connection.close()
    reader = penstock.connect()
    reader.execute(table)
    found = reader.execute("SELECT who, id FROM shared").fetchall()
    reader.close()
    assert Counter(found) == Counter(
        (f"{prefix}/{name}", number) for prefix, name in jobs for number in range(1, ROWS + 1)
    )
    places = {prefix: folders_in(ObjectUrl("s3", BUCKET, f"{kind}-{prefix}")) for prefix, _ in jobs}
    folders = {
        prefix: sorted(str(place).rpartition("/")[2] for place in there) for prefix, there in places.items()
    }
    assert folders == {"jobs": ["one-1", "two-1"], "elsewhere": ["one-1"]}
