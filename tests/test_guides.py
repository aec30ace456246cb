"""The guides of docs/: recipes return the rows that stand below them, and each row of a comparison returns
what it says.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.monitoring.prometheus import prometheus_name
from penstock.engine.job.metric_registry import METRICS
from penstock.repl.launch.arguments import run_parser
from penstock.repl.output.cell_text import text_column

DOCS = Path(__file__).resolve().parent.parent / "docs"
COOKBOOK = (DOCS / "COOKBOOK.md").read_text(encoding="utf-8")
COMPARISONS = ["COMING_FROM_FLINK.md", "COMING_FROM_SPARK.md"]
_FILE = re.compile(r"^`(data/\S+)`:\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLES = re.compile(r"^```sql\n(CREATE TABLE clicks.*?)^```$", re.MULTILINE | re.DOTALL)
_RECIPE = re.compile(
    r"^## (\d+)\. ([^\n]+)\n(?:(?!^## ).)*?^```sql\n(.*?)^```\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_RUN = re.compile(r"^\| .* \| (?:`` (.+?) ``|`([^`]+)`) \| (?:(refused) )?`([^`]*)` \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with penstock.connect(
        settings={"bounded.backend": "duckdb", "table.local-time-zone": "UTC"}
    ) as connection:
        yield connection


def rows(connection: Connection, query: str, separator: str) -> list[str]:
    """The rows of a query as the shell prints their cells."""
    cursor = connection.cursor()
    cursor.execute(query)
    table = cursor.fetch_arrow_table()
    cells = [text_column(column.combine_chunks(), "UTC").to_pylist() for column in table.columns]
    lines = [
        separator.join("NULL" if cell is None else cell for cell in row) for row in zip(*cells, strict=True)
    ]
    return [separator.join(table.column_names), *lines]


def test_every_recipe_returns_its_rows(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one session, so that the tables are made once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    files = dict(_FILE.findall(COOKBOOK))
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    connection.executescript(_TABLES.findall(COOKBOOK)[0])
    recipes = _RECIPE.findall(COOKBOOK)
    assert [int(number) for number, *_ in recipes] == list(range(1, 21))
    wrong = {}
    for _, title, script, expected in recipes:
        *before, query = [statement for statement in script.split(";\n") if statement.strip()]
        for statement in before:
            connection.execute(statement)
        # a stream has no order; the first line is the header
        header, *found = rows(connection, query, ",")
        if [header, *sorted(found)] != [expected.split("\n")[0], *sorted(expected.strip().split("\n")[1:])]:
            wrong[title] = [header, *found]
    assert not wrong


@pytest.mark.parametrize("page", COMPARISONS)
def test_every_query_of_a_comparison_answers_as_it_says(connection: Connection, page: str) -> None:
    table = (DOCS / page).read_text(encoding="utf-8").replace(r"\|", "|")
    compared = _RUN.findall(table)
    assert len(compared) > 20
    # every row of a table with the column answer is compared
    sections = re.findall(r"\| query \| answer \|\n\|[-|]+\|\n((?:\|.*\n)+)", table)
    assert sum(section.count("\n") for section in sections) == len(compared)
    wrong = []
    for quoted, plain, refused, answer in compared:
        query = quoted or plain
        try:
            found = "; ".join(rows(connection, query, ", ")[1:])
            code = None
        except PenstockError as error:
            found = code = error.code
        if found != answer or (code is not None) is not bool(refused):
            wrong.append((query, found, answer))
    assert not wrong


def test_the_blocks_of_the_guide_to_lakehouses_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "LAKEHOUSE.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == page.count("```sql") > 4
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as connection:
        for script, expected in blocks:
            *before, query = [statement for statement in script.split(";\n") if statement.strip()]
            for statement in before:
                connection.execute(statement)
            header, *found = rows(connection, query, ",")
            assert [header, *sorted(found)] == expected.splitlines(), query


def test_the_unit_of_systemd_starts_penstock() -> None:
    page = (DOCS / "OPERATIONS.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=(.+)$", page, re.MULTILINE)
    program, run, *words = shlex.split(command)
    assert program.endswith("/penstock") and run == "run"
    arguments = run_parser().parse_words(words)
    assert arguments.state == "state" and arguments.files == ["job.sql"]


def test_alerts_are_on_metrics_that_there_are() -> None:
    page = (DOCS / "OPERATIONS.md").read_text(encoding="utf-8")
    names = set(re.findall(r"penstock_[a-z_]+", page))
    assert len(names) == 5
    assert names <= {prometheus_name(metric) for metric in METRICS.values()}


def test_the_site_has_the_pages_it_names() -> None:
    configuration = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^    - (\w+\.md)$", configuration, re.MULTILINE)
    assert len(named) > 30 and len(set(named)) == len(named)
    assert not [name for name in named if not (DOCS / name).exists()]


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Where the extra ``docs`` is installed: 15 seconds."""
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "ERRORS.html").exists()
    # a fence of two words is code, too
    assert 'class="k">SET' in (tmp_path / "STATE.html").read_text(encoding="utf-8")
