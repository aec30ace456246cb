"""Kept tables parse as made ones do; what is not theirs, or not whole, is made anew."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.planner.statements import grammar as grammar_module
from penstock.planner.statements.grammar import tables_of
from penstock.planner.statements.lexer import StatementLexer

SOURCE = Path(grammar_module.__file__).with_name("statements.lark")
STATEMENT = (
    "CREATE TABLE t (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
)


@pytest.fixture
def grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", None)
    copied = tmp_path / "statements.lark"
    copied.write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    return copied


def parse(grammar: Path) -> object:
    return tables_of(grammar, StatementLexer, ["statement"]).parse(STATEMENT, start="statement")


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    lark = grammar_module.Lark

    class Counted(lark):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: object, **options: object) -> None:
            made.append(1)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(grammar_module, "Lark", Counted)
    return made


def test_tables_are_made_once(grammar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch)
    assert parse(grammar) == parse(grammar) == parse(grammar)
    assert len(made) == 1 and len(list(grammar.parent.glob("__pycache__/*"))) == 1


@pytest.mark.parametrize("damage", ["another grammar", "cut short", "a bit", "nothing", "garbage"])
def test_tables_of_something_else_are_made_anew(
    grammar: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    expected = parse(grammar)
    (kept,) = grammar.parent.glob("__pycache__/*")
    content = kept.read_bytes()
    if damage == "another grammar":
        grammar.write_text(grammar.read_text(encoding="utf-8") + "\n// more", encoding="utf-8")
    damaged = {
        "cut short": content[:5000],
        "a bit": content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        "nothing": b"",
        "garbage": b"\n\n\n",
    }
    kept.write_bytes(damaged.get(damage, content))
    made = counted(monkeypatch)
    assert parse(grammar) == expected and parse(grammar) == expected
    assert len(made) == 1


def test_where_nothing_can_be_written_tables_are_made_each_time(
    grammar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grammar.parent / "__pycache__").write_text("not a directory", encoding="utf-8")
    made = counted(monkeypatch)
    assert parse(grammar) == parse(grammar) and len(made) == 2
