"""A job stopped in mid-run goes on after its tables were declared in wider types, or with a column more:
the answer is that of a job begun so.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock
from penstock.engine.checkpoint.state_migration import Migrations
from tests.streaming.migration.jobs import (
    CARRIED,
    CATALOGUE,
    LONGER,
    NARROW,
    WIDE,
    Tables,
    write_rows,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wider")
    write_rows(made, noted=False)
    return made


def fates(changes: list[str]) -> set[str]:
    return {change.split(":")[0] for change in changes}


@pytest.mark.parametrize("group", CATALOGUE)
def test_every_operator_goes_on_in_wider_types(root: Path, group: str) -> None:
    """Stopped once before its tables are declared otherwise, once after, and finished: each time at
    another parallelism.
    """
    fresh, kept = (Tables(root, f"{name}_{group}", CATALOGUE[group]) for name in ("fresh", "kept"))
    fresh.finish(WIDE)
    kept.stop_in_mid_run(NARROW)
    before = kept.results()
    changes = kept.stop_in_mid_run(WIDE, parallelism_default="2")
    assert fates(changes) == {"kept", "migrated"}
    assert any(
        re.match(r"migrated: .* bytes, was [0-9a-f]+: .*SMALLINT is BIGINT", change) for change in changes
    )
    assert kept.finish(WIDE, allowed=False, parallelism_default="3") == []
    assert kept.results() == fresh.results() and before != fresh.results()


def test_rows_kept_are_widened_and_have_null_in_a_column_added_to_the_end(tmp_path: Path) -> None:
    write_rows(tmp_path, noted=True)
    fresh, kept = (Tables(tmp_path, name, CARRIED) for name in ("fresh", "kept"))
    fresh.finish(LONGER)
    without = {
        name: (columns, re.sub(r"(\w+\.)?\bnote\b", "CAST(NULL AS STRING)", query))
        for name, (columns, query) in CARRIED.items()
    }
    kept.stop_in_mid_run(NARROW, kept.statement(without))
    changes = kept.finish(LONGER, parallelism_default="2")
    assert sum("note STRING is added, NULL in the restored state" in change for change in changes) >= len(
        CARRIED
    )
    assert kept.results() == fresh.results()
    assert all(
        any("note" in row for row in rows)
        for name, rows in fresh.results().items()
        if name in ("joined", "near", "running", "thrice")
    )


def test_spilled_rows_are_migrated(root: Path) -> None:
    """Rows are on disk before and after."""
    fresh, kept = (
        Tables(root, f"{name}_spilled", {"joined": CATALOGUE["joins"]["joined"]})
        for name in ("fresh", "kept")
    )
    fresh.finish(WIDE)
    budget = {"state_memory_budget-per-slot": "150 kB", "state_spill_dir": str(root)}
    kept.stop_in_mid_run(NARROW, **budget)
    assert "migrated" in fates(kept.finish(WIDE, parallelism_default="2", **budget))
    assert kept.results() == fresh.results()


@pytest.fixture(scope="module")
def stopped(root: Path) -> Tables:
    kept = Tables(
        root,
        "refused",
        {name: CATALOGUE[group][name] for group, name in (("aggregates", "grouped"), ("joins", "joined"))},
    )
    kept.stop_in_mid_run(NARROW)
    return kept


REFUSED = {
    "narrowed": (
        NARROW.replace("v SMALLINT", "v TINYINT"),
        ["column v of table a was SMALLINT and is TINYINT", "min(v) TINYINT", "min(v) SMALLINT"],
    ),
    "integer to float": (
        NARROW.replace("v SMALLINT", "v DOUBLE"),
        ["min(v) DOUBLE", "there is global aggregate by k (k TINYINT", "min(v) SMALLINT"],
    ),
    "another scale": (
        NARROW.replace("(10, 2)", "(12, 4)"),
        ["column d of table a was DECIMAL(10, 2) and is DECIMAL(12, 4)", "max(d) DECIMAL(12, 4)"],
    ),
    "more words": (
        NARROW.replace("(10, 2)", "(20, 2)"),
        ["max(d) was DECIMAL(10, 2) and is DECIMAL(20, 2): aggregates of more than 18"],
    ),
    "mean of bigint": (
        NARROW.replace("k TINYINT", "k BIGINT"),
        ["avg(k) DOUBLE", "there is global aggregate by k (k TINYINT", "sum(k) BIGINT"],
    ),
    "key changed": (
        NARROW,
        ["aggregate by (CAST(k AS INT) + 1) (", "there is global aggregate by k (k TINYINT"],
    ),
    "column dropped": (
        NARROW.replace(", d DECIMAL(10, 2)", ""),
        ["there is left join (id INT, id INT, v SMALLINT, d DECIMAL(10, 2))"],
    ),
    "computed column": (
        NARROW,
        ["its rows have a column", "that the restored rows do not have, and it is computed"],
    ),
    "known column": (
        NARROW,
        ["its rows have a column name STRING that the restored rows do not have, and table b had it then"],
    ),
    "added in the middle": (
        NARROW.replace("k TINYINT", "note STRING, k TINYINT"),
        ["and it is not at the end of table b as it was declared"],
    ),
    "added as not null": (
        NARROW + ", note STRING NOT NULL",
        ["and it is NOT NULL, filled by the connector, or of a table of changes"],
    ),
}
REWRITTEN = {
    "key changed": ("FROM a GROUP BY k", "FROM a GROUP BY k + 1", "SELECT k,", "SELECT k + 1,"),
    "column dropped": (
        "b.d FROM",
        "CAST(NULL AS DECIMAL(10, 2)) FROM",
        "MAX(d), AVG(k), SUM(d)",
        "MAX(CAST(v AS DECIMAL(10, 2))), AVG(k), SUM(v)",
    ),
    "computed column": (
        "b.v, b.d FROM a LEFT JOIN b",
        "b.v, b.e FROM a LEFT JOIN (SELECT id, v, d + 1 AS e FROM b) AS b",
    ),
    "known column": ("b.v, b.d FROM", "b.v, b.d + CHAR_LENGTH(b.name) FROM"),
    "added in the middle": ("b.v, b.d FROM", "b.v, b.d + CHAR_LENGTH(b.note) FROM"),
    "added as not null": ("b.v, b.d FROM", "b.v, b.d + CHAR_LENGTH(b.note) FROM"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_anything_else_is_refused_with_both_schemas(stopped: Tables, what: str) -> None:
    columns, said = REFUSED[what]
    statement = stopped.statement()
    words = REWRITTEN.get(what, ())
    for old, new in zip(words[::2], words[1::2], strict=True):
        assert old in statement
        statement = statement.replace(old, new)
    for allowed, code in ((False, "STA-3007"), (True, "STA-3043")):
        with pytest.raises(penstock.Error) as caught:
            stopped.finish(columns, statement, allowed=allowed)
        assert caught.value.code == code
    assert all(words in caught.value.detail for words in said), caught.value.detail


def test_a_swapped_source_is_refused_in_wider_types_too(stopped: Tables) -> None:
    for name in "ab":
        (stopped.root / f"{name}.json").write_bytes((stopped.root / f"{name}.jsonl").read_bytes())
    with pytest.raises(penstock.Error) as caught:
        stopped.finish(WIDE, suffix="json")
    assert (
        caught.value.code == "STA-3043"
        and "there is source a (id INT" in caught.value.detail
        and "source a (id BIGINT" in caught.value.detail
    )


def test_without_the_flag_the_refusal_says_what_would_be_migrated(stopped: Tables) -> None:
    with pytest.raises(penstock.Error) as caught:
        stopped.finish(WIDE, allowed=False)
    assert caught.value.code == "STA-3007" and "--allow-changed-query" in caught.value.hint
    assert "detail: migrated: left join" in str(
        caught.value
    ) and "id INT is BIGINT, v SMALLINT is BIGINT, d DECIMAL(10, 2) is DECIMAL(16, 2)" in str(caught.value)


def test_a_restore_that_leaves_migration_out_is_refused(
    stopped: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bug: state is matched and taken as it is."""
    monkeypatch.setattr(Migrations, "of", lambda self, one, other: None)
    with pytest.raises(penstock.Error) as caught:
        stopped.finish(WIDE)
    assert (
        caught.value.code == "STA-3009"
        and "int16" in caught.value.detail
        and "wanted are (" in caught.value.detail
    )
