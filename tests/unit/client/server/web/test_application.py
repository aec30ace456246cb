"""The API over a real listener: what it answers is what the engine has; what it refuses, and how."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from penstock.client.server.web.application import API_ROUTES
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.harness.web_listener import WebServer, web_server

NUMBERS = (
    "CREATE TABLE numbers (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', "
    "'rows-per-second' = '100')"
)
HOLE = "CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')"
INSERT = "INSERT INTO hole SELECT n FROM numbers"
SETTINGS = {"execution.runtime-mode": "streaming", "execution.checkpointing.interval": "100 ms"}


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with web_server(Session({**SETTINGS, "pipeline.name": "<b>job</b>"})) as made:
        for statement in (NUMBERS, HOLE, INSERT):
            made.session.execute(statement)
        # its tasks have counted something
        while not made.session.jobs()[0].metrics().rows_out:
            assert not made.session.jobs()[0].wait(0.01)
        yield made


def job_of(server: WebServer) -> str:
    return server.session.jobs()[0].job_id


def test_jobs_are_listed_newest_first(server: WebServer) -> None:
    answer = server.get("/api/v1/jobs")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    oldest = answer.json["jobs"][-1]
    assert (oldest["job_id"], oldest["name"], oldest["state"]) == (job_of(server), "<b>job</b>", "RUNNING")
    assert oldest["statement"] == INSERT


def test_a_job_has_its_graph_and_settings(server: WebServer) -> None:
    job = server.get(f"/api/v1/jobs/{job_of(server)}").json
    assert job["settings"]["execution.checkpointing.interval"] == "100 ms"
    operators = [one["name"] for chain in job["graph"]["chains"] for one in chain["operators"]]
    assert (operators[0], operators[-1]) == ("source numbers", "sink hole")
    assert server.get(f"/api/v1/jobs/{job_of(server)}/graph").json["chains"][0]["is_source"]


@pytest.mark.parametrize("part", ["checkpoints", "metrics", "errors", "rejected-rows"])
def test_the_parts_of_a_job(server: WebServer, part: str) -> None:
    answer = server.get(f"/api/v1/jobs/{job_of(server)}/{part}")
    assert answer.status == 200
    if part == "metrics":
        assert "numRecordsOut" in {one["name"] for one in answer.json["metrics"]}


def test_a_job_that_is_not_there_is_404(server: WebServer) -> None:
    for path in ("/api/v1/jobs/nobody", "/api/v1/jobs/nobody/stream"):
        answer = server.get(path)
        assert (answer.status, answer.code) == (404, "CLI-6030")
        assert answer.json["error"]["hint"]


def test_facts_come_as_a_stream(server: WebServer) -> None:
    with server.events("GET", f"/api/v1/jobs/{job_of(server)}/stream") as events:
        name, first = next(events)
        assert name == "job"
        # counts grow from event to event
        while (later := next(events)[1])["summary"]["rows_in"] <= first["summary"]["rows_in"]:
            pass
        assert later["read_at_ms"] > first["read_at_ms"]


def test_a_query_answers_with_columns(server: WebServer) -> None:
    sql = "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s) ORDER BY n"
    answer = server.post("/api/v1/query", {"sql": sql}).json
    assert [(one["name"], one["type"]) for one in answer["columns"]] == [("n", "INT"), ("s", "STRING")]
    assert (answer["data"], answer["rows"], answer["more"]) == ([[1, 2], ["a", None]], 2, False)


def test_an_endless_query_answers_with_its_first_rows(server: WebServer) -> None:
    answer = server.post("/api/v1/query", {"sql": "SELECT n FROM numbers", "limit": 3}).json
    assert (answer["rows"], answer["more"]) == (3, True)


def test_changes_come_as_they_are_made(server: WebServer) -> None:
    sql = "SELECT n % 2 AS k, COUNT(*) AS c FROM numbers GROUP BY n % 2"
    with server.events("POST", "/api/v1/query/stream", {"sql": sql}) as events:
        name, shape = next(events)
        assert (name, shape["mode"], shape["key"], shape["finite"]) == ("columns", "upsert", [0], False)
        seen: set[str] = set()
        for name, data in events:
            seen |= set(data["ops"]) if name == "rows" else set()
            if "+U" in seen:
                break
    assert {"+I", "-U", "+U"} <= seen
    query = next(job for job in server.session.jobs() if job.job_id == shape["job"])
    # the reader has left: its query ends
    assert query.wait(PATIENCE_S)
    assert query.state == "CANCELED"


def test_subscribe_shows_each_change(server: WebServer) -> None:
    sql = "SUBSCRIBE SELECT n % 2 AS k, COUNT(*) AS c FROM numbers GROUP BY n % 2"
    with server.events("POST", "/api/v1/query/stream", {"sql": sql}) as events:
        shape = next(events)[1]
        assert ([one["name"] for one in shape["columns"]], shape["mode"]) == (["op", "k", "c"], "append")
        ops: set[str] = set()
        while not {"+I", "-U", "+U"} <= ops:
            name, data = next(events)
            ops |= set(data["data"][0]) if name == "rows" else set()


def test_rejected_rows_are_shown(tmp_path: Path) -> None:
    lines = [
        '{"k": 1, "ts": "2026-01-01 00:00:09"}',
        "<b>no json</b>",
        '{"k": 2, "ts": "2026-01-01 00:00:01"}',
    ]
    (tmp_path / "in.json").write_text("\n".join(lines) + "\n")
    settings = {
        "execution.runtime-mode": "streaming",
        "execution.batch.max-rows": "1",
        "table.dml-sync": "true",
    }
    with web_server(Session(settings)) as server:
        for statement in (
            f"CREATE TABLE t (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = "
            f"'filesystem', 'path' = '{tmp_path}/in.json', 'format' = 'json', 'on-error' = 'table')",
            HOLE,
            "INSERT INTO hole SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
            "GROUP BY window_start, window_end",
        ):
            server.session.execute(statement)
        rejected = server.get(f"/api/v1/jobs/{job_of(server)}/rejected-rows").json
    (bad,), (late,) = rejected["bad"], rejected["late"]
    assert bad["table"] == "t$errors"
    assert bad["data"][0] == ["<b>no json</b>"]
    names = [one["name"] for one in late["columns"]]
    assert late["data"][names.index("window_end")] == ["2026-01-01 00:00:02.000000"]


def test_a_stream_of_a_statement_without_rows_ends_with_its_note(server: WebServer) -> None:
    sql = "SET 'pipeline.name' = '<b>job</b>'"
    with server.events("POST", "/api/v1/query/stream", {"sql": sql}) as events:
        assert [name for name, _ in events] == ["columns", "end"]


def test_a_result_that_ends_comes_as_rows(server: WebServer) -> None:
    sql = "SELECT k, COUNT(*) AS c FROM (VALUES (1), (1), (2)) AS t(k) GROUP BY k ORDER BY k"
    with server.events("POST", "/api/v1/query/stream", {"sql": sql}) as events:
        got = list(events)
    assert got[0][1]["finite"]
    assert [data["data"] for name, data in got if name == "rows"] == [[[1, 2], [2, 1]]]
    assert got[-1][0] == "end"


def test_an_error_of_a_statement(server: WebServer) -> None:
    answer = server.post("/api/v1/query", {"sql": "SELECT nothing FROM numbers"})
    error = answer.json["error"]
    assert (answer.status, error["code"], error["line"], error["column"]) == (400, "SQL-1042", 1, 8)
    assert "^^^^^^^" in error["text"]
    with server.events("POST", "/api/v1/query/stream", {"sql": "SELECT nothing FROM numbers"}) as events:
        name, data = next(events)
    assert (name, data["error"]["code"]) == ("failure", "SQL-1042")


def test_a_plan_starts_nothing(server: WebServer) -> None:
    before = len(server.session.jobs())
    plan = server.post("/api/v1/explain", {"sql": "SELECT n FROM numbers WHERE n > 1"}).json["plan"]
    assert "numbers" in plan
    assert len(server.session.jobs()) == before
    for sql in ("DROP TABLE numbers", "SELECT 1; SELECT 2"):
        assert server.post("/api/v1/explain", {"sql": sql}).code == "CLI-6250"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sql": 1},
        {"sql": "SELECT 1", "limit": 0},
        {"sql": "SELECT 1", "limit": True},
        b"[",
        b"[1]",
        b"\xff",
        b"[" * 100_000,
    ],
    ids=["empty", "number", "zero", "true", "half", "array", "no utf-8", "deep"],
)
def test_a_body_that_is_not_understood(server: WebServer, body: object) -> None:
    answer = server.post("/api/v1/query", body)
    assert (answer.status, answer.code) == (400, "CLI-6250")


def test_sessions_are_those_of_the_server(server: WebServer) -> None:
    sessions = server.get("/api/v1/sessions").json
    names = [one["name"] for one in sessions["columns"]]
    assert sessions["data"][names.index("listener")] == ["web"]
    read = server.post("/api/v1/query", {"sql": "SELECT listener, role FROM system.sessions"}).json
    assert read["data"] == [["web"], ["admin"]]


def test_probes_and_metrics(server: WebServer) -> None:
    assert server.get("/health").body == b"ok\n"
    assert server.get("/ready").status == 200
    metrics = server.get("/metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert f'penstock_job_uptime_seconds{{job="{job_of(server)}"}}'.encode() in metrics.body
    assert b"penstock_operator_num_records_out_total{" in metrics.body


def test_the_document_describes_each_route(server: WebServer) -> None:
    document = server.get("/api/v1/openapi.json").json
    validate(document)
    described = {(method.upper(), path) for path, one in document["paths"].items() for method in one}
    assert described == {(route.method, f"/api/v1{route.path}") for route in API_ROUTES}
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))


def test_each_route_answers(server: WebServer) -> None:
    """No route of the document is a fault: an unknown job is 404, a missing body is 400."""
    for route in API_ROUTES:
        path = "/api/v1" + route.path.replace("{job}", "nobody")
        # a stream of all jobs has no end
        if path != "/api/v1/jobs/stream":
            status = server.request(route.method, path, {} if route.method == "POST" else None).status
            assert status in (200, 400, 404), (route, status)


def test_actions_end_a_job() -> None:
    with web_server(Session(SETTINGS)) as server:
        for statement in (NUMBERS, HOLE, INSERT, INSERT):
            server.session.execute(statement)
        first, second = (job.job_id for job in server.session.jobs())
        rescaled = server.post(f"/api/v1/jobs/{first}/rescale", {"parallelism": 2})
        assert rescaled.status == 200, rescaled.body
        assert rescaled.json["state"] == "RUNNING"
        assert server.get(f"/api/v1/jobs/{first}").json["summary"]["parallelism"] == 2
        assert server.post(f"/api/v1/jobs/{first}/rescale", {"parallelism": 0}).code == "CLI-6250"
        assert server.post(f"/api/v1/jobs/{first}/savepoint", {}).code == "STA-3037"
        stopped = server.post(f"/api/v1/jobs/{first}/stop", {"drain": False})
        assert stopped.status == 200, stopped.body
        assert stopped.json["state"] == "FINISHED"
        assert server.post(f"/api/v1/jobs/{second}/cancel", {}).json["state"] == "CANCELED"


def test_a_savepoint_is_written_where_it_was_asked(tmp_path: Path) -> None:
    with web_server(Session({**SETTINGS, "execution.checkpointing.dir": str(tmp_path / "state")})) as server:
        for statement in (NUMBERS, HOLE, INSERT):
            server.session.execute(statement)
        # a quote in a directory is a character, and ends no literal of SQL
        target = tmp_path / "it's {here}"
        answer = server.post(f"/api/v1/jobs/{job_of(server)}/savepoint", {"directory": str(target)})
        assert answer.status == 200, answer.body
        assert str(target) in answer.json["note"]
        assert list(target.rglob("*")) and answer.json["state"] == "RUNNING"
        answer = server.post(
            f"/api/v1/jobs/{job_of(server)}/savepoint", {"directory": str(target), "stop": True}
        )
        assert answer.json["state"] == "FINISHED" and len([*target.iterdir()]) == 2


def test_a_fault_is_told_without_its_cause(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("hunter22")

    monkeypatch.setattr("penstock.client.server.web.job_api.job_summary", break_down)
    answer = server.get("/api/v1/jobs")
    assert (answer.status, answer.code) == (500, "INT-9062")
    assert b"hunter22" not in answer.body
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert server.get("/api/v1/jobs/stream").code == "INT-9062"


def test_a_fault_in_a_stream_is_its_last_event(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.events("GET", "/api/v1/jobs/stream") as events:
        assert next(events)[0] == "jobs"
        monkeypatch.setattr("penstock.client.server.web.job_api.job_summary", None)
        # one event may be on its way
        *_, (name, data) = events
    assert (name, data["error"]["code"]) == ("failure", "INT-9062")
