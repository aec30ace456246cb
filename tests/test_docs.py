"""The pages of docs/ and README.md: every statement in them is planned or run, every program runs, and the
state of the language is what they say.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.registry import AGGREGATE_NAMES
from penstock.catalog.functions.table import table_function_names
from penstock.catalog.functions.window import WINDOW_FUNCTIONS
from penstock.client.session import Session
from penstock.client.statements.show import help_on
from penstock.planner.logical.over import OVER_ONLY
from penstock.planner.parser.keywords import KEYWORDS, STATEMENTS
from penstock.planner.statements.nodes import Insert, Query
from tests.harness.case_files import case_files
from tests.harness.package_tree import PACKAGES, lay_programs

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *case_files(ROOT / "docs", "*.md")]
STATUS = ROOT / "docs" / "LANGUAGE_STATUS.md"
HINTED = ROOT / "tests" / "sql" / "stated" / "hinted.sql"
MODULE = "my_functions"
OTHER_FENCES = ("text", "toml", "ini", "dockerfile")
"""What is printed, and files of other programs: nothing that a test could run."""
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^penstock> ((?:.|\n)*?;)$", re.MULTILINE)
_MADE_UP = re.compile(r"\(\.\.|\s\.\.|\[(OR|IF) [A-Z ]+\]|'id'")
ROW_FUNCTIONS = """
import penstock
import pyarrow.compute as pc


@penstock.udf(["BIGINT"], "BIGINT")
def plus_one(x):
    return pc.add(x, 1)


@penstock.udaf(["BIGINT"], "BIGINT", mode="row")
def spread(values):
    return pc.subtract(pc.max(values), pc.min(values)).as_py()


@penstock.udtf(["BIGINT"], {"w": "BIGINT"}, mode="row")
def twice(x):
    return [(x,), (x,)]


@penstock.ptf({"visits": "BIGINT"})
class Visits:
    seen = penstock.value_state("BIGINT")

    def process(self, ctx):
        ctx.state.seen = pc.add(pc.fill_null(ctx.state.seen, 0), ctx.offsets[1:] - ctx.offsets[:-1])
        ctx.emit([ctx.state.seen])
"""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the checkout's queries in it, as pages expect them, which
    statements write to.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    yield tmp_path
    sys.modules.pop(MODULE, None)


def blocks(page: Path, fence: str) -> list[str]:
    """The blocks of a page with a fence; those of sql with as many empty lines before them as there are
    lines above them in the page.
    """
    text = page.read_text(encoding="utf-8")
    return [
        "\n" * text.count("\n", 0, found.start(2)) + found[2]
        for found in _BLOCK.finditer(text)
        if found[1] == fence
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_fences_say_what_is_in_them(page: Path) -> None:
    fences = {found[1] for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))}
    assert fences <= {"", "sql", "sql fragment", "python", "mermaid", *OTHER_FENCES}
    for text in blocks(page, "sql"):
        assert not _MADE_UP.search(re.sub(r"--[^\n]*", "", text)), text
    for text in blocks(page, "sql fragment"):
        assert _MADE_UP.search(text), f"can be planned, so it is no fragment: {text}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem
)
def test_programs_run(page: Path, workplace: Path) -> None:
    (workplace / f"{MODULE}.py").write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    runpy.run_path(f"{MODULE}.py")


def test_programs_are_laid_for_mypy() -> None:
    """``test_programs_run`` runs them; mypy reads them from where they are laid."""
    laid = [path.stem for path in lay_programs()]
    assert [name for name in laid if name.startswith("table_api")] == [f"table_api_{n}" for n in range(1, 11)]
    pages = {page.stem.lower() for page in PAGES if blocks(page, "python")}
    assert {re.sub(r"_\d+$", "", name) for name in laid} == pages


@pytest.mark.parametrize(
    "page",
    # the tutorial's statements need its files: tests/test_tutorial.py runs them. Those of MISTAKES.md are
    # typed into the system's shell or wrong: tests/sql/first_hour runs them.
    # Those of LAKEHOUSE.md need what the blocks before them have written: tests/test_guides.py runs them.
    [
        page
        for page in PAGES
        if page.stem not in ("TUTORIAL", "MISTAKES", "LAKEHOUSE")
        and (blocks(page, "sql") or _TYPED.search(page.read_text()))
    ],
    ids=lambda page: page.stem,
)
def test_statements_are_planned(page: Path, workplace: Path) -> None:
    """Tables, views and settings of a page are made in one session; its queries and inserts are planned."""
    (workplace / f"{MODULE}.py").write_text(
        ROW_FUNCTIONS + "\n".join(blocks(page, "python")), encoding="utf-8"
    )
    session = Session({"bounded.backend": "duckdb", "table.dml-sync": "true"})
    typed = [found[1] for found in _TYPED.finditer(page.read_text(encoding="utf-8"))]
    try:
        for text in [*blocks(page, "sql"), *typed]:
            for statement in session.parse(text, page.name):
                session.explain(statement)
    finally:
        session.close()


def status_rows() -> list[tuple[str, str | None, str]]:
    """Of each row of the table: what it is about, the code it is refused with, and its statements."""
    rows = []
    for line in STATUS.read_text(encoding="utf-8").split("\n"):
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 5 and cells[3].startswith("`"):
            refused = re.fullmatch(r"refused ([A-Z]{3}-\d{4}): .+", cells[2])
            assert refused or cells[2] == "works", f"a state that is none: {cells[2]}"
            rows.append((cells[1], refused[1] if refused else None, cells[3].strip("`")))
    return rows


def test_the_state_of_the_language(workplace: Path) -> None:
    """Statements of one session, in the order of the page: what works is run to its end, what is refused
    is refused with the code the page says.
    """
    (workplace / f"{MODULE}.py").write_text(ROW_FUNCTIONS, encoding="utf-8")
    session, wrong, last = Session(), [], ""
    try:
        for statement in [
            statement for text in blocks(STATUS, "sql") for statement in session.parse(text, STATUS.name)
        ]:
            session.run(statement)
        for about, code, text in status_rows():
            given = None
            try:
                for statement in session.parse(text.replace("{last}", last)):
                    result = session.run(statement)
                    last = result.job.job_id if result.job is not None else last
                    for _ in result.batches():
                        pass
            except PenstockError as error:
                given = error.code
                assert len(error.render().split("\n")) <= 12
                assert len(error.message) <= 140
            if given != code:
                wrong.append(f"{about}: {given or 'works'}, and the page says {code or 'works'}")
        wrong += refused_hints(session)
    finally:
        session.close()
    assert not wrong, "\n".join(wrong)


def refused_hints(session: Session) -> list[str]:
    """Plan what the hints of refused constructs say to write, in a session with the tables of the page.
    Return what is refused all the same.
    """
    wrong = []
    for statement in session.parse(HINTED.read_text(encoding="utf-8"), HINTED.name):
        try:
            if isinstance(statement.node, Query | Insert):
                session.pipeline.plan(session.pipeline.bind(statement.node))
            else:
                session.run(statement)
        except PenstockError as error:
            wrong.append(f"{statement.text}: {error.code} {error.message}")
    return wrong


def test_pages_are_listed() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in PAGES[1:] if f"({page.relative_to(ROOT).as_posix()})" not in readme]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not os.path.exists(page.parent / link)]


def test_words_of_statements_are_known_to_the_shell() -> None:
    """Every word of the statements' grammar is completed and highlighted, and HELP tells of every word a
    statement may begin with.
    """
    words = set(
        re.findall(
            r'"([A-Z_]+)"', (ROOT / "planner" / "statements" / "statements.lark").read_text(encoding="utf-8")
        )
    )
    assert words <= KEYWORDS
    told = {row for batch in help_on(None).batches() for row in batch.column(0).to_pylist()}
    silent = {word for word in STATEMENTS if not any(re.search(rf"\b{word}\b", row) for row in told)} - {
        "DESC",
        "BEGIN",
        "HELP",
        "QUIT",
        "EXIT",
    }
    assert not silent


def test_every_function_is_shown() -> None:
    shown = {
        row["function"]: row["kind"]
        for batch in Session().execute("SHOW FUNCTIONS").batches()
        for row in batch.to_pylist()
    }
    assert {name for name, kind in shown.items() if kind == "window"} == OVER_ONLY - AGGREGATE_NAMES
    assert {name for name, kind in shown.items() if kind == "table"} == set(table_function_names())
    assert {function.name for function in WINDOW_FUNCTIONS} == OVER_ONLY


def test_files_of_the_architecture_are_there() -> None:
    """A path between backticks is a folder, a file, or a module without its ``.py``."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:catalog|planner|optimizer|engine|client|repl|tests)/[\w/.]+)", text))
    assert len(paths) > 80
    assert not {path for path in paths if not any((ROOT / f"{path}{end}").exists() for end in ("", ".py"))}


def test_functions_of_the_architecture_are_there() -> None:
    """``Class.method`` or ``function``, "in" a file: it is defined there."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w.]+)`\s+in\s+`([\w/]+)`", text)
    assert len(named) > 15
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^#)", text, re.MULTILINE | re.DOTALL)
    nameless = [step for step in steps if not re.search(r"`[\w.]+`\s+in\s+`[\w/]+`", step)]
    assert len(steps) >= 12 and not nameless, f"steps that name no function: {nameless}"
    for name, place in named:
        source = (ROOT / f"{place}.py").read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(?:def|class) {part}\b|^{part}\b", source, re.MULTILINE), (name, place)


def test_every_folder_is_in_the_architecture() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {
        str(path.parent.relative_to(ROOT))
        for top in (*PACKAGES, "penstock")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert folders == set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))
