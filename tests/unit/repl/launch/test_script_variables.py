import pytest

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.script_runner import substitute


def test_only_quoted_text_is_replaced():
    text = "SELECT '${day}', `${col}`, \"${col}\" -- ${none} it's\n/* ${none} */ FROM t"
    assert (
        substitute(text, {"day": "it's", "col": "a`b"})
        == "SELECT 'it''s', `a``b`, \"a`b\" -- ${none} it's\n/* ${none} */ FROM t"
    )


def test_a_missing_variable_has_a_place_and_a_hint():
    with pytest.raises(PenstockError) as caught:
        substitute("SELECT\n '${dya}'", {"day": "x"}, "a.sql")
    assert caught.value.code == "CLI-6110"
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert caught.value.hint == 'did you mean "day"?'


def test_a_value_of_several_lines_is_refused():
    with pytest.raises(PenstockError, match="several lines"):
        substitute("SELECT '${day}'", {"day": "a\nb"})
