"""The registry of error codes and ``penstock explain-error``. That every code is in it is tested in
tests/test_house.py.
"""

import json
import re

import pytest

from penstock.catalog.connectors.registry import CONNECTORS
from penstock.catalog.declared_settings import SETTINGS
from penstock.catalog.error_codes.registry import ERROR_CODES, FAMILIES, error_code
from penstock.catalog.errors import PenstockError
from penstock.repl.cli import main

OF_SPARK = {"spark.speculation", "spark.driver.memory", "spark.executor.memory", "spark.archives"}
PLACEHOLDERS = {"penstock[spark]", "penstock[postgres]", "module.function"}


def test_causes_and_cures_are_sentences():
    for code in ERROR_CODES.values():
        for text in (code.cause, code.cure):
            assert text[0] not in " ." and text.endswith("."), code
            assert max(len(sentence.split()) for sentence in re.split(r"[.;:] ", text)) <= 25, code
        assert code.cause != code.cure


def test_families_are_those_of_the_codes_and_in_their_order():
    assert list(dict.fromkeys(code[:3] for code in ERROR_CODES)) == list(FAMILIES)
    assert all(
        list(codes) == sorted(codes) for codes in ([c for c in ERROR_CODES if c[:3] == f] for f in FAMILIES)
    )


def test_settings_and_options_of_cures_exist():
    options = {option.key for connector in CONNECTORS.values() for option in connector.options}
    used = {
        word
        for code in ERROR_CODES.values()
        for word in re.findall(r"'([a-z]+(?:[.-][a-z.-]+)+)'", code.cure)
    }
    assert len(used) > 20
    assert not used - SETTINGS.keys() - options - OF_SPARK - PLACEHOLDERS


@pytest.mark.parametrize("name", ["SQL-1042", "sql-1042", "error[SQL-1042]:", " [SQL-1042] "])
def test_a_code_is_found_as_it_is_copied(name):
    assert error_code(name).code == "SQL-1042"


def test_a_code_that_is_not_there():
    with pytest.raises(PenstockError) as refused:
        error_code("SQL-104")
    assert refused.value.code == "CLI-6160"
    assert refused.value.hint == 'did you mean "SQL-1004"?'


def test_the_command(capsys):
    assert main(["explain-error", "SQL-1042", "dat-4101"]) == 0
    out = capsys.readouterr().out
    for code in ("SQL-1042", "DAT-4101"):
        assert f"{code} (" in out
        assert f"cause: {ERROR_CODES[code].cause}\ncure:  {ERROR_CODES[code].cure}\n" in out
    assert main(["explain-error"]) == 0
    assert [line[:8] for line in capsys.readouterr().out.splitlines()] == list(ERROR_CODES)
    assert main(["explain-error", "--json", "SQL-1042"]) == 0
    assert [row["code"] for row in json.loads(capsys.readouterr().out)] == ["SQL-1042"]


def test_an_unknown_code_does_not_hide_the_others(capsys):
    assert main(["explain-error", "XYZ-1", "SQL-1042"]) == 2
    printed = capsys.readouterr()
    assert "SQL-1042 (Statements)" in printed.out
    assert "error[CLI-6160]: there is no error code XYZ-1" in printed.err
