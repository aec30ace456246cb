"""The formatter: every statement of the golden files stays the same statement, keeps its comments, and is
left alone by a second pass.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.planner.formatter import formatter
from penstock.planner.formatter.formatter import format_script
from penstock.planner.parser.scanner import scan
from tests.harness.case_files import case_files
from tests.harness.golden import read_cases
from tests.harness.length import of_length

ROOT = Path(__file__).resolve().parents[4]
QUERIES = [*case_files(ROOT / "queries", "*.sql"), *case_files(ROOT / "queries/nexmark", "*.sql")]
GOLDEN = [
    path
    for folder in ("unit/planner/scripts", "sql")
    for path in case_files(ROOT / "tests" / folder, "**/*.sql")
]
COMMENT = re.compile(r"--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)


def test_every_script_of_the_project_stays_what_it_is() -> None:
    for path in QUERIES:
        text = path.read_text(encoding="utf-8")
        done = format_script(text)
        assert format_script(done) == done, path
        assert max(len(line) for line in done.splitlines() if "--" not in line) <= 120, path


@pytest.mark.longer
def test_every_golden_statement_stays_what_it_is() -> None:
    # each statement is changed at random first: words in small letters, other white space, comments between
    chance, formatted, refused = random.Random(14), 0, 0
    cases = [case.input for path in GOLDEN for case in read_cases(path) if case.input]
    for text in cases[:: of_length(3, 1)]:
        try:
            done = format_script(disturbed(text, chance))
        except ExceptionGroup:
            # scripts with syntax errors are the others' cases
            refused += 1
            continue
        # format_script itself compares the statements; the comments are compared here
        assert sorted(COMMENT.findall(without_strings(done))).count("-- noted") == 1, text
        if chance.random() < 0.2:
            assert format_script(done) == done, text
        formatted += 1
    assert formatted > of_length(200, 600)
    assert refused < of_length(85, 250)


def disturbed(text: str, chance: random.Random) -> str:
    """The same statements with other white space and a comment somewhere between two tokens."""
    tokens = list(scan(text))
    noted, out, position = chance.randrange(len(tokens)), [], 0
    for number, (kind, start, end) in enumerate(tokens):
        gap = text[position:start]
        out.append(chance.choice((gap, f"{gap} ", f"{gap}\n", "\n\n")) if gap.isspace() else gap)
        # a comment inside of PATTERN (..) or behind SET is part of a value
        verbatim = re.search(r"(?i)pattern|\b(re)?set\b|help", text)
        if number == noted and kind != "open":
            out.append("\n-- noted\n" if not verbatim else "")
        out.append(text[start:end])
        position = end
    return ("-- noted\n" if "\n-- noted\n" not in out else "") + "".join(out) + text[position:]


def without_strings(text: str) -> str:
    return re.sub(r"'[^']*'", "''", text)


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        ("\n\n-- only a comment\n\n", "-- only a comment\n"),
        ("select 1", "SELECT 1\n"),
        ("select a.first,Date , left( a,2 )from t;", "SELECT a.first, Date, left(a, 2) FROM t;\n"),
        ("select a - -1, -b, 1-2, x::int, 10.5e-3", "SELECT a - -1, -b, 1 - 2, x::INT, 10.5e-3\n"),
        ("set 'a'='b';\nset x.y-z  =  it is ;", "SET 'a' = 'b';\nSET x.y-z  =  it is;\n"),
        ("select 1 -- one\n, 2 /* two */ as b", "SELECT\n  1, -- one\n  2 /* two */ AS b\n"),
        ("\\i a'b.sql\nselect 1 \\gx", "\\i a'b.sql\nSELECT 1 \\gx\n"),
        ("create table t(a map<string,array<int>>)", "CREATE TABLE t (a MAP<STRING, ARRAY<INT>>)\n"),
        ("select a<b, c>d, e<>-f from t", "SELECT a < b, c > d, e <> -f FROM t\n"),
        ("select 1;\r\nselect 2;\r\n", "SELECT 1;\r\nSELECT 2;\r\n"),
        ("\ufeffselect 1", "SELECT 1\n"),
        ("SELECT 'it''s', \"odd \"\"name\", `b``c`", "SELECT 'it''s', \"odd \"\"name\", `b``c`\n"),
        ("select :limit+$count where a=:left and b[:x]", "SELECT :limit + $count WHERE a = :left AND b[:x]\n"),
        ("select 1;;select 2", "SELECT 1;\n;\nSELECT 2\n"),
    ],
)  # fmt: skip
def test_small_scripts(text: str, formatted: str) -> None:
    assert format_script(text) == formatted
    assert format_script(formatted) == formatted


def test_the_layout_of_a_job() -> None:
    text = """
create table clicks(id int, page string comment 'where; really', -- the page
  /* time */ ts timestamp(3), watermark for ts as ts - interval '5' second) with ('connector'='filesystem','path'='clicks','format'='csv');

insert into totals
select window_start, page, count(*) as clicks, sum(case when id > 0 then 1 when id < 0 then -1 else 0 end) as balance
from table(tumble(table clicks, descriptor(ts), interval '1' minute)) as w left join pages p on w.page = p.page and w.id = p.id
where page is distinct from 'x' and id between 1 and 100 or id in (1, 2, 3, 4, 5, 6, 7, 8, 9) or page like 'y%'
group by window_start, page
"""
    assert (
        format_script(text)
        == """\
CREATE TABLE clicks (
  id INT,
  page STRING COMMENT 'where; really', -- the page
  /* time */
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv');

INSERT INTO totals
SELECT
  window_start,
  page,
  count(*) AS clicks,
  sum(CASE WHEN id > 0 THEN 1 WHEN id < 0 THEN -1 ELSE 0 END) AS balance
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS w
LEFT JOIN pages p ON w.page = p.page AND w.id = p.id
WHERE page IS DISTINCT FROM 'x'
  AND id BETWEEN 1 AND 100
  OR id IN (1, 2, 3, 4, 5, 6, 7, 8, 9)
  OR page LIKE 'y%'
GROUP BY window_start, page
"""
    )


def test_errors_are_those_of_the_parser() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        format_script("SELECT 1;\nSELEC 2;\nSELECT FROM t", "job.sql")
    first, second = raised.value.exceptions
    assert isinstance(first, PenstockError)
    assert isinstance(second, PenstockError)
    assert (first.line, second.line) == (2, 3)
    assert "job.sql:2:1" in first.render()


def test_a_statement_that_would_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the comparison: a layout that loses a word is noticed, and its statement is named."""
    real = formatter.lay_out
    monkeypatch.setattr(
        formatter, "lay_out", lambda lexemes: real([each for each in lexemes if each.word != "NOT"])
    )
    with pytest.raises(PenstockError, match="would not be the same") as raised:
        format_script("SELECT 1;\nSELECT NOT a FROM t")
    assert (raised.value.code, raised.value.line) == ("CLI-6154", 2)
