"""Job codec: every plan of the EXPLAIN corpus comes back equal; names that are not on the list are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.restart_strategy import FixedDelay
from penstock.engine.deploy.protocol.codec import decode, encode
from penstock.planner.physical.operator_specs import JobGraph
from penstock.planner.statements.nodes import Insert, Query
from tests.harness.golden import read_cases
from tests.sql.explain.test_explain_corpus import PLANS, ROOT, SETTINGS, TABLES, scripts


def graphs_of(text: str) -> Iterator[JobGraph]:
    session = Session(SETTINGS)
    session.register("dims", pa.table({"k": pa.array([1], pa.int32()), "name": ["a"]}))
    try:
        for statement in session.parse(text):
            if isinstance(statement.node, Query | Insert):
                graph = session.pipeline.plan(session.pipeline.bind(statement.node)).graph
                if graph is not None:
                    yield graph
            else:
                session.run(statement)
    except PenstockError:  # a case of the corpus that is refused has no plan
        return
    finally:
        session.close()


def test_every_plan_of_the_corpus_comes_back_equal() -> None:
    texts = [TABLES + case.input for case in read_cases(PLANS / "constructs")]
    for name in scripts():
        path = ROOT / "queries" / name
        tables = (
            (path.parent / "tables.sql").read_text(encoding="utf-8") if path.parent.name == "nexmark" else ""
        )
        texts.append(
            (tables + path.read_text(encoding="utf-8")).replace("queries/data/", f"{ROOT}/queries/data/")
        )
    graphs = [graph for text in texts for graph in graphs_of(text)]
    assert len(graphs) > 90
    for graph in graphs:
        back = decode(encode(graph))
        assert back == graph
        assert repr(back) == repr(graph)  # also the fields that take no part in equality


def test_plain_values_and_options_come_back() -> None:
    options = JobOptions(state_dir=Path("/x"), restart=FixedDelay(attempts=2, delay=1.5))
    values = (
        b"\0\xff",
        Decimal("1.50"),
        date(1, 2, 3),
        datetime(2026, 1, 2, 3, 4, 5, 6),
        time(1, 2),
        timedelta(days=-1, microseconds=5),
    )
    for value in (
        options,
        values,
        float("inf"),
        -0.0,
        1.0,
        1,
        True,
        None,
        2**80,
        "é\n",
        {"a": (1,)},
        frozenset({1, 2}),
    ):
        back = decode(encode(value))
        assert back == value
        assert repr(back) == repr(value)
    assert str(decode(encode(float("nan")))) == "nan"


def test_what_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(PenstockError, match="cannot be sent"):
        encode(pa.table({"a": [1]}))
    with pytest.raises(PenstockError, match="cannot be sent"):
        encode([1])  # plans hold no lists
    for nodes in (
        [["object", "subprocess.Popen", "ls"]],
        [["object", "penstock.catalog.schema.Role", "x"]],  # an enum is no object
        [["object", "penstock.catalog.schema.Schema"]],
        [["enum", "penstock.catalog.schema.Schema", "x"]],
        [["enum", "penstock.catalog.schema.Role", "__class__"]],
        [["function", "os.system"]],
        [["tuple", [0]]],  # refers to itself
        [["tuple", [-1]]],
        [["eval", "1"]],
        [[]],
    ):
        with pytest.raises(PenstockError):
            decode(json.dumps({"root": [0], "nodes": nodes}).encode())
    for data in (b"", b"{", b"[]", b'{"root": [7], "nodes": []}', b"[" * 100_000):
        with pytest.raises(PenstockError):
            decode(data)
