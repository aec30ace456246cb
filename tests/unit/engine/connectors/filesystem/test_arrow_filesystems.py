"""Tables in an object store, over the wire: options say how it is reached, what is there is read, listed and
watched, and what does not work has a sentence.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.arrow_filesystems import client_options, resolve, store_error
from penstock.engine.connectors.filesystem.listing import FileListing
from tests.harness.object_stores import KEY, REGION, SECRET, ObjectServer, moto_server


def options(server: ObjectServer) -> dict[str, str]:
    return {
        "s3.endpoint": server.endpoint,
        "s3.region": REGION,
        "s3.access-key": KEY,
        "s3.secret-key": SECRET,
    }


def declared(server: ObjectServer, path: str, **more: str) -> str:
    given = {"connector": "filesystem", "format": "parquet", "path": path, **options(server), **more}
    return "WITH (" + ", ".join(f"'{key}' = '{value}'" for key, value in given.items()) + ")"


@pytest.mark.xdist_group("moto")
def test_what_a_job_writes_is_read_once_by_penstock_and_by_arrow(tmp_path: Path) -> None:
    server = moto_server()
    path = f"s3://{server.bucket('tables')}/{tmp_path.name}"
    settings = {"execution.checkpointing.interval": "200 ms", "parallelism.default": "2"}
    with penstock.connect(settings=settings) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3000', "
            "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '3000')"
        )
        cursor.execute(
            f"CREATE TABLE written (id BIGINT, d BIGINT) PARTITIONED BY (d) {declared(server, path)}"
        )
        cursor.execute("INSERT INTO written SELECT id, id % 3 FROM numbers")
        again = declared(server, path, **{"source.replay": "true"})
        cursor.execute(f"CREATE TABLE replayed (id BIGINT, d BIGINT) PARTITIONED BY (d) {again}")
        cursor.execute("SELECT COUNT(*), SUM(id), SUM(d) FROM replayed")
        assert cursor.fetchall()[-1] == (3000, 4_501_500, 3000)
    filesystem, root = resolve(path, options(server))
    infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    files = [info.path for info in infos if info.path.endswith(".parquet")]
    assert len(FileListing(path, "parquet", options(server)).files()) == len(files) >= 3


@pytest.mark.xdist_group("moto")
def test_a_bucket_that_is_not_there() -> None:
    server = moto_server()
    with pytest.raises(PenstockError) as missing:
        FileListing("s3://no-such-bucket/t", "csv", options(server)).files()
    assert missing.value.code in ("DAT-4101", "DAT-5504")


def test_nobody_at_the_endpoint() -> None:
    closed = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key": KEY, "s3.secret-key": SECRET}
    error = store_error("s3://b/t", OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: .."))
    assert error is not None and error.code == "DAT-5509" and error.retriable
    assert client_options(closed) == {
        "endpoint": "http://127.0.0.1:9",
        "access_key_id": KEY,
        "secret_access_key": SECRET,
    }


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("ACCESS_DENIED", "DAT-5506"),
        ("INVALID_ACCESS_KEY_ID", "DAT-5505"),
        ("SIGNATURE_DOES_NOT_MATCH", "DAT-5505"),
        ("NO_SUCH_BUCKET", "DAT-5504"),
    ],
)
def test_answers_of_stores_have_a_code(answer: str, code: str) -> None:
    error = store_error("s3://b/t", OSError(f"When listing: AWS Error {answer} during ListObjectsV2: no"))
    assert error is not None and error.code == code and error.hint


def test_another_error_is_none_of_a_store() -> None:
    assert store_error("t", OSError("Parquet magic bytes not found")) is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"path": "files/t", "s3.region": "x"}, "option 's3.region' is of s3:// URLs"),
        ({"path": "s3://b/t", "s3.access-key": "x"}, "are given together or not at all"),
        ({"path": "gs://b/t", "auto-compaction": "true"}, "merges files of directories only"),
    ],
)
def test_options_that_do_not_fit_are_refused_at_create_table(given: dict[str, str], sentence: str) -> None:
    words = {"connector": "filesystem", "format": "csv", **given}
    with penstock.connect() as connection, pytest.raises(penstock.Error, match=sentence):
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in words.items())
        connection.cursor().execute(f"CREATE TABLE t (id BIGINT) WITH ({listed})")
