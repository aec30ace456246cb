"""One secret planted wherever statements and settings have secrets, errors of every sort, and everything
written or shown searched for it.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

import penstock
from penstock.catalog import errors
from penstock.catalog.connectors.registry import CONNECTORS, is_secret
from penstock.catalog.declared_settings import SETTINGS
from penstock.catalog.errors import PenstockError
from penstock.catalog.secrets import (
    KnownSecrets,
    holds_secrets,
    masked,
    names_secret,
    redact_url,
)
from penstock.client.connection import Connection
from penstock.client.dbapi_errors import client_error
from penstock.client.monitoring.prometheus import exposition
from penstock.client.session import Session
from penstock.engine.bounded.spark import jvm_launcher
from penstock.engine.bounded.spark.java_runtime import Java
from penstock.engine.job.metric_registry import metrics_of
from penstock.repl.cli import main
from penstock.repl.shell.editor import _HistoryFile

SECRET = "pl4nted/s3cr3t@word"
WORDS = ("pl4nted", "s3cr3t")  # no part of it either
SPELLED = [
    "'password' = '{}'",
    "'Password'='{}'",
    "'pasword' = '{}'",
    "'passwrod' '{}'",
    "'psswd' = '{}'",
    "'tokne' = '{}'",
    "'secert' = '{}'",
    "'kredentials' = '{}'",
    "'api-key' = '{}'",
    "'key' = '{}'",
    "'sasl.jaas.config' = '{}'",
    "'password' == '{}'",
    "'password': '{}'",
    "'password' /* of mine */ = -- this\n  '{}'",
    "'password' = '{}",
    "'password' = {}",
    "password = '{}'",
    '"password" = "{}"',
    "'password' = 'it''s {}'",
    "'password' = '{}\nand more'",
    "'url' = 'postgresql://me:{}@here:5432/db'",
    "'url' = 'postgresql://me:{}@'",
    "'url' = 'host=here user=me password={} dbname=db'",
    "'url' = 'host=here password=''{} x'' dbname=db'",
    "'url' = 'http://here/f.csv?a=1&sig={}'",
    "'properties.client_secret' = '{}'",
]


def shown(text: str) -> bool:
    return any(word in text for word in WORDS)


def places(error: PenstockError) -> str:
    """Everything an error can be printed as, its causes and its text included."""
    chain = "".join(traceback.format_exception(error))
    source = error.source.text if error.source is not None else ""
    return "\n".join(
        [
            str(error),
            repr(error),
            error.render(color=True),
            repr(error.args),
            json.dumps(error.as_dict()),
            repr(vars(error)),
            chain,
            source,
        ]
    )


@pytest.mark.parametrize("spelled", SPELLED)
def test_a_text_without_its_secrets_has_the_same_places(spelled: str) -> None:
    text = f"CREATE TABLE t (a INT) WITH ('connector' = 'postgres', {spelled.format(SECRET)}, 'table-name' = 'tee')"
    hidden = masked(text)
    # of a name in other quotes nothing is withheld
    assert not shown(hidden) and (holds_secrets(text) or spelled[0] != "'")
    assert len(hidden) == len(text) and hidden.count("\n") == text.count("\n")
    assert hidden.startswith("CREATE TABLE t (a INT) WITH ('connector' = 'postgres', ")
    assert all(a in (b, "*") for a, b in zip(hidden, text, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT tokens, passed, 'a' AS b FROM t WHERE taken = 'yes' AND c LIKE 'x'",
        "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = 'http://here:8080/a/b.csv', 'format' = 'csv')",
        "CREATE TABLE t (a INT) WITH ('fields.key.kind' = 'sequence', 'connector' = 'datagen')",
        "SET 'table.local-time-zone' = 'UTC'",
        "SELECT * FROM t WHERE \"key\" = 'abc' AND `sort_key` = 'b' AND MAP['key', 'x']['key'] = 'x'",
        "SELECT DATE '2020-01-01', INTERVAL '1' DAY, ts AT TIME ZONE 'Asia/Tokyo' FROM s3.bucket",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert masked(text) == text and not holds_secrets(text)


def test_what_a_column_is_compared_with_is_masked_and_no_secret_to_remember() -> None:
    text = "SELECT * FROM t WHERE token = 'abcd' AND \"password\" = 'efgh'"
    assert masked(
        text
    ) == "SELECT * FROM t WHERE token = '****' AND \"password\" = '****'" and not holds_secrets(text)
    known = KnownSecrets()
    known.learn(text)
    assert known.redacted("abcd efgh") == "abcd efgh"


def test_declared_secrets_are_known_by_their_names_and_nothing_else_is() -> None:
    """So a text alone says where its secrets are, whatever connector it names, and however much of it can
    be parsed.
    """
    for name, connector in CONNECTORS.items():
        for option in connector.options:
            assert names_secret(option.key) == option.secret == is_secret(name, option.key), (
                name,
                option.key,
            )
    assert not [key for key in SETTINGS if names_secret(key)]


def test_a_secret_that_was_cut_or_quoted_is_found_in_the_words_of_others() -> None:
    known = KnownSecrets()
    known.learn(f"CREATE TABLE t WITH ('password' = '{SECRET * 5}', 'connector' = 'x')")
    known.remember("ab")
    known.remember("town")
    for said in (SECRET * 5, (SECRET * 5)[:40] + "..", json.dumps(SECRET * 5), f"refused: {SECRET}"):
        assert not shown(known.redacted(said)), said
    assert known.redacted("a cab downtown, in town") == "a cab downtown, in ******"
    assert (
        redact_url("postgres://me:a@b/c@here/db and s3://b/k?sig=x&n=1")
        == "postgres://******@here/db and s3://b/k?sig=******&n=1"
    )


def test_long_texts_are_searched_in_time() -> None:
    """No text makes the search quadratic: each of these took minutes when it was."""
    for hostile in ("a://", "pass=", "x.", "'", "password ", "a /* ", "'key' = "):
        masked(hostile * 20_000)


def test_causes_of_any_class_are_without_secrets() -> None:
    KnownSecrets().learn("")
    penstock.connect().execute(f"SET 'spark.hadoop.fs.s3a.secret.key' = '{SECRET}'")
    try:
        try:
            try:
                raise KeyError(SECRET)
            except KeyError as lowest:
                raise OSError(f"cannot log in with {SECRET!r}") from lowest
        except OSError as low:
            raise PenstockError(
                "DAT-4701", f"no connection: {low}", detail=f"{SECRET}", hint=f"not {SECRET}"
            ) from low
    except PenstockError as error:
        told = places(client_error(error))
        assert "cannot log in with" in told and "OSError" in told and not shown(told)


DEAD = "127.0.0.1:1"
OPTIONS = {
    "postgres": f"'url' = 'postgresql://{DEAD}/db', 'table-name' = 't'",
    "filesystem": "'path' = 'n.csv', 'format' = 'csv'",
}
WRONG = [
    "CREATE TABLE {name} (n INT, n INT) WITH ({options})",
    "CREATE TABLE {name} (n NOTHING) WITH ({options})",
    "CREATE TABLE {name} (n INT WITH ({options})",
    "CREATE TABLE {name} (n INT, m AS nope + 1) WITH ({options})",
    "CREATE TABLE {name} (n INT, WATERMARK FOR n AS n) WITH ({options})",
    "CREATE TABLE {name} (n INT) WITH ({options}, 'no-such-option' = '1')",
    "CREATE TABLE {name} (n INT) WITH ({options}, 'connector' = 'twice')",
    "CREATE TABLE {name} (n INT) WITH ({options}, )",
    "CREATE TABLE {name} (n INT) WITH ({options}) AND MORE",
    "CREATE TABLE {name} LIKE nothing WITH ({options})",
    "CREATE CATALOG {name} WITH ('type' = 'file', {options})",
    "CREATE CATALOG {name} WITH ('type' = 'spark', {options})",
    "ALTER TABLE n SET ({options})",
    "SELECT * FROM n /*+ OPTIONS({options}) */",
    "SELECT nope FROM n /*+ OPTIONS({options}) */",
    "SELECT 1; SELECT '{{}}' ({options}",
]


def errors_of(connection: penstock.Connection, text: str) -> Iterator[PenstockError]:
    try:
        for row in connection.executescript(text).fetchall():
            assert not shown(str(row)), text
    except PenstockError as error:
        yield error


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.csv").write_text("n\n1\n2\n")
    return tmp_path


def test_no_error_of_a_statement_shows_its_secrets(folder: Path) -> None:
    connection = penstock.connect(settings={"bounded.backend": "duckdb"})
    connection.execute(f"CREATE TABLE n (n INT) WITH ('connector' = 'filesystem', {OPTIONS['filesystem']})")
    count = 0
    for name in CONNECTORS:
        for place, spelled in enumerate(SPELLED):
            options = f"'connector' = '{name}', {OPTIONS.get(name, '')}{',' if name in OPTIONS else ''} {spelled.format(SECRET)}"
            for number, wrong in enumerate(
                WRONG[place % 4 :: 4] if name in OPTIONS else [WRONG[5 * (place % 2)]]
            ):
                for error in errors_of(connection, wrong.format(name=f"t{number}", options=options)):
                    count += 1
                    assert not shown(places(error)), (name, spelled, wrong)
    assert count > 400


def test_without_the_redaction_errors_show_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "masked", lambda text: text)
    (error,) = errors_of(
        penstock.connect(),
        WRONG[0].format(name="t", options=f"'connector' = 'postgres', 'password' = '{SECRET}'"),
    )
    assert shown(str(error))


def test_carets_point_at_the_same_letters(folder: Path) -> None:
    connection = penstock.connect()
    with pytest.raises(PenstockError) as refused:
        connection.execute(
            f"CREATE TABLE t (n INT) WITH ('connector' = 'postgres', 'password' = '{SECRET}', 'tabel-name' = 't')"
        )
    line, caret = str(refused.value).splitlines()[1:3]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "'tabel-name'" and "*" * len(SECRET) in line


def test_nothing_that_is_shown_or_written_has_a_secret(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of tables and settings that are right: what EXPLAIN, SHOW and DESCRIBE say, what fails at run time,
    and every file of the state directory.
    """
    state, told = folder / "state", []
    session = Session(
        {"bounded.backend": "duckdb", "table.dml-sync": "true", "restart-strategy.type": "none"},
        state_dir=state,
    )
    connection = Connection(session)
    made = [
        f"SET 'spark.hadoop.fs.s3a.secret.key' = '{SECRET}'",
        "SET 'execution.checkpointing.interval' = '50 ms'",
        f"CREATE TABLE n (n INT) WITH ('connector' = 'filesystem', {OPTIONS['filesystem']}, 'source.replay' = 'true')",
        f"CREATE TABLE p (n INT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'postgres', {OPTIONS['postgres']}, 'password' = '{SECRET}')",
        f"CREATE TABLE u (n INT) WITH ('connector' = 'postgres', 'url' = 'postgresql://me:{SECRET}@{DEAD}/db', 'table-name' = 't')",
        f"CREATE TABLE h (n INT) WITH ('connector' = 'filesystem', 'path' = 'http://me:{SECRET}@{DEAD}/n.csv', 'format' = 'csv')",
        "CREATE TABLE o (n INT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv')",
        "CREATE VIEW v AS SELECT n FROM u WHERE n > 1",
    ]
    shows = [
        *(
            f"{verb} {name}"
            for name in ("p", "u", "h")
            for verb in ("SHOW CREATE TABLE", "DESCRIBE", "DESCRIBE EXTENDED")
        ),
        *(
            f"EXPLAIN{how} SELECT * FROM {name}"
            for name in ("p", "u", "h", "v")
            for how in ("", " VERBOSE", " ESTIMATED_COST")
        ),
        "SET",
        "SET 'spark.hadoop.fs.s3a.secret.key'",
        "SHOW SETTINGS",
        "SHOW TABLES",
        "SHOW JOBS",
        "SHOW METRICS",
        "INSERT INTO o SELECT n FROM n",
        "INSERT INTO o SELECT n FROM n /*+ OPTIONS('csv.delimiter' = ';') */ WHERE CAST(n AS STRING) <> 'x'",
        "INSERT INTO p SELECT n FROM n",
        "INSERT INTO u SELECT n FROM n",
        "SELECT * FROM p",
        "SELECT * FROM u",
        "SELECT * FROM h",
        "SELECT n.n FROM n JOIN u ON n.n = u.n",
        "SELECT CAST(concat('a', CAST(n AS STRING)) AS INT) FROM n",
        "CREATE TABLE p2 LIKE p",
        "SHOW CREATE TABLE p2",
        "CREATE CATALOG kept WITH ('type' = 'file', 'path' = 'kept')",
        "SHOW JOBS",
    ]
    for text in [*made, *shows]:
        try:
            told.append(
                str(connection.execute(text).fetchall()) + str(connection.execute("SHOW JOBS").fetchall())
            )
        except PenstockError as error:
            told.append(places(error))
    for job in session.jobs():
        told.append(exposition(metrics_of(job.job_id, job.metrics())) + repr(job.metrics()))
        told.append(places(job.error) if isinstance(job.error, PenstockError) else repr(job.error))
        told.append(str(connection.execute(f"DESCRIBE JOB '{job.job_id}'").fetchall()))
    connection.close()
    main(["jobs", "--state", str(state)])
    told += capsys.readouterr()
    assert not [text for text in told if shown(text)]
    assert any("DAT-47" in text for text in told) and any(
        "CREATE TABLE" in text and "******" in text for text in told
    )
    written = [path for path in state.rglob("*") if path.is_file()]
    assert len(written) > 3
    assert not [path for path in written if any(word.encode() in path.read_bytes() for word in WORDS)]


def test_secrets_of_spark_are_on_no_command_line(folder: Path) -> None:
    """Everybody on a machine can read those; a file of this user's has them."""
    java = Java(Path("java"), 17, False, "here")
    configuration = {
        "spark.master": "local",
        "spark.hadoop.fs.s3a.secret.key": f"{SECRET}\\\n",
        "spark.ssl.keyPassword": SECRET,
    }
    command = jvm_launcher._command(java, [], folder, folder, configuration)
    assert not shown(" ".join(command)) and "spark.master=local" in command
    path = Path(command[command.index("--properties-file") + 1])
    assert (
        path.read_text()
        == f"spark.hadoop.fs.s3a.secret.key={SECRET}\\\\\\n\nspark.ssl.keyPassword={SECRET}\n"
    )
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_command_line_and_its_history_have_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    for spelled in SPELLED[:6]:
        assert (
            main(["-c", f"CREATE TABLE t (n INT WITH ('connector' = 'postgres', {spelled.format(SECRET)})"])
            != 0
        )
    assert main(["--set", f"pipeline.pasword={SECRET}", "-c", "SELECT 1"]) != 0
    (folder / "job.sql").write_text(
        f"CREATE TABLE t (n INT, n INT) WITH ('connector' = 'postgres', 'password' = '{SECRET}');"
    )
    assert main(["run", "job.sql"]) != 0
    written = out.buffer.getvalue() + err.buffer.getvalue()  # type: ignore[attr-defined]
    assert b"CREATE TABLE t" in written and not shown(written.decode())
    history = _HistoryFile(str(folder / "history"))
    for typed in (
        f"SET 'spark.x.password' = '{SECRET}';",
        f"CREATE TABLE t (a INT) WITH ('password' = '{SECRET}');",
        "SELECT 1;",
    ):
        history.append_string(typed)
    assert not shown((folder / "history").read_text())
    assert next(iter(FileHistory(str(folder / "history")).load_history_strings())) == "SELECT 1;"
