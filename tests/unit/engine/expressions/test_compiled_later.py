"""Functions that machine code computes after the first rows: as their general kernels, hashlib and base64."""

from __future__ import annotations

import base64
import hashlib
import random
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import from_arrow
from penstock.client.session import Session
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions import kernel_factory
from penstock.engine.expressions.nested import array_functions
from penstock.engine.kernels.arrow_views import string_parts
from penstock.planner.expressions.nodes import Literal
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.expressions import spark_cases, word_cases
from tests.unit.engine.expressions.against_spark import differences, recording
from tests.unit.engine.expressions.calls import call, col, lit, run
from tests.unit.engine.expressions.nested_cases import bound

LETTERS = [*"abzAZ059- {`@[:", "é", "ı", "ſ", "日", "😀", "\n", ","]
NUMBERS = [
    "",
    " ",
    "-",
    "-0",
    "0",
    " 17 ",
    "ff",
    "FFFFFFFFFFFFFFFF",
    "-1",
    "1.5",
    "z9",
    "+5",
    "é1",
    "1ı",
    None,
]
WORDS = [None, 0, 1, -1, 10, 255, -(2**63), 2**63 - 1]


def texts_of(seed: int, count: int, longest: int) -> pa.Array:
    """Random texts, some NULL and empty, as a slice whose first text does not begin at the first byte."""
    chance = random.Random(seed)
    drawn = [
        None if chance.random() < 0.03 else "".join(chance.choices(LETTERS, k=chance.randint(0, longest)))
        for _ in range(count)
    ]
    return pa.array(["xyz", *drawn, "é"]).slice(1, count)


def computed(name: str, column: pa.Array, *constants: object, is_compiled: bool = True) -> pa.Array:
    """Return a function's results by machine code, or by its general kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_factory, "FIRST_ROWS", 0 if is_compiled else 1 << 60)
        batch = pa.record_batch([column], names=["c"])
        literals = [Literal(from_arrow(pa.scalar(c).type), False, value=c) for c in constants]
        result = run(call(name, col(batch, "c"), *literals), batch)
    result.validate(full=True)
    return result


def both_ways(name: str, column: pa.Array, *constants: object) -> list:
    found, expected = (computed(name, column, *constants, is_compiled=way) for way in (True, False))
    assert found.equals(expected), name
    return found.to_pylist()


@pytest.mark.parametrize(
    ("name", "constants", "digest"),
    [
        ("md5", (), "md5"),
        ("sha1", (), "sha1"),
        ("sha2", (0,), "sha256"),
        ("sha2", (224,), "sha224"),
        ("sha2", (256,), "sha256"),
        ("sha2", (384,), "sha384"),
        ("sha2", (512,), "sha512"),
    ],
)
def test_digests_are_those_of_hashlib(name: str, constants: tuple[int, ...], digest: str) -> None:
    chance = random.Random(len(name))
    drawn = [chance.randbytes(chance.randint(0, 300)) for _ in range(10_000)]
    # each length around the ends of blocks, a long one beside short ones, NULL
    drawn += [b"\xff" * size for size in range(140)] + [b"x" * 70_000, None, b"", None]
    column = pa.array([b"xyz", *drawn, b"z"], pa.binary()).slice(1, len(drawn))
    expected = [None if value is None else hashlib.new(digest, value).hexdigest() for value in drawn]
    assert computed(name, column, *constants).to_pylist() == expected
    for texts in (texts_of(1, 100, 90), pa.nulls(5, pa.string()), pa.array(["é"])):
        both_ways(name, texts, *constants)


def test_numbers_in_other_bases() -> None:
    column = pa.array([5, *WORDS, *(random.Random(1).randint(-(2**63), 2**63) for _ in range(500))]).slice(1)
    for name in ("bin", "hex"):
        both_ways(name, column)
    texts = pa.array(["x", *NUMBERS, *(f"{n:x}" for n in column.drop_null().to_pylist() if n >= 0)]).slice(1)
    ascii_texts = texts.filter(pa.compute.string_is_ascii(texts))
    for source, target in [
        (16, 10),
        (10, 16),
        (2, 36),
        (36, -36),
        (16, -10),
        (16, -2),
        (10, 8),
        (1, 10),
        (10, 99),
    ]:
        # with letters beyond ASCII all are computed as before
        for column in (texts, ascii_texts):
            if source <= 16 or source > 36:
                both_ways("conv", column, source, target)
        both_ways("conv", texts_of(source, 300, 6), source, target)
    for text in ("FFFFFFFFFFFFFFFF0", "10000000000000000", "ffffffffffffffffff"):
        for is_compiled in (True, False):
            with pytest.raises(PenstockError, match="more than 64 bits"):
                computed("conv", pa.array(["1", text]), 16, 10, is_compiled=is_compiled)


def test_base64_is_that_of_python() -> None:
    for column in (texts_of(4, 500, 20), pa.nulls(3, pa.string()), pa.array([b"\xff\x00", b"", None])):
        found = both_ways("base64", column)
        octets = [
            value if value is None else value if isinstance(value, bytes) else value.encode()
            for value in column.to_pylist()
        ]
        assert found == [value if value is None else base64.b64encode(value).decode() for value in octets]


def test_capitals_of_words() -> None:
    for column in (texts_of(5, 500, 12), pa.array([None, "", "  aB c", "ZZ zz-a 1a", "a\nb"])):
        both_ways("initcap", column)
    assert computed("initcap", pa.array(["hello wORLD", "a  b"])).to_pylist() == ["Hello World", "A  B"]


def test_places_in_a_list() -> None:
    column = pa.array(["x", "a", "b", "", None, "a,b", "é", "c"]).slice(1)
    for listed in ("a,b,a", "", ",", "é,,a,b", "b"):
        items = listed.split(",")
        expected = [
            None if text is None else items.index(text) + 1 if text in items and "," not in text else 0
            for text in column.to_pylist()
        ]
        assert computed("find_in_set", column, listed).to_pylist() == expected


@pytest.mark.parametrize("name", ["sort_array", "array_sort"])
def test_lists_are_sorted_as_by_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(6)
    for values in (
        WORDS,
        [None, 1.5, float("nan"), -0.0, 0.0, float("-inf")],
        ["b", None, "", "é", "ab"],
        [3, 1, 2],
    ):
        lists = [
            None if chance.random() < 0.1 else chance.choices(values, k=chance.randint(0, 8))
            for _ in range(200)
        ]
        column = pa.array([[values[1]], *lists]).slice(1)
        directions = [(), (True,), (False,)] if name == "sort_array" else [()]
        for constants in directions:
            found = []
            for few in (0, 1 << 60):
                monkeypatch.setattr(array_functions, "_FEW_ELEMENTS", few)
                found.append(computed(name, column, *constants))
            assert str(found[0]) == str(found[1])


def test_results_beyond_one_array_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "array_bytes", 100)
    for name in ("md5", "sha1", "base64", "bin"):
        column = pa.array([2**40 + 1] * 9) if name == "bin" else pa.array(["some text and more"] * 9)
        with pytest.raises(PenstockError, match=r"RUN-20(06|23)"):
            computed(name, column)


def test_no_rows_have_no_results() -> None:
    for name, constants in (
        *(("md5", ()), ("sha1", ()), ("sha2", (256,)), ("base64", ()), ("initcap", ()), ("bin", ())),
        *(("hex", ()), ("conv", (16, 10)), ("find_in_set", ("a,b",))),
    ):
        column = pa.array([7] if name in ("bin", "hex") else ["a"])
        for rows in (column.slice(0, 0), column.slice(1), pa.array([], column.type)):
            assert both_ways(name, rows, *constants) == []


def test_machine_code_gives_what_spark_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_factory, "FIRST_ROWS", 0)
    monkeypatch.setattr(array_functions, "_FEW_ELEMENTS", 0)
    compiled, checked, found = ("md5(", "sha1(", "sha2(", "initcap(", "sort_array(", "array_sort("), 0, []
    cases = [("strings", spark_cases.rows(), dict(spark_cases.FAMILIES["strings"]()))]
    words = (*compiled, "bin(", "hex(", "conv(", "base64(", "find_in_set(")
    cases.append(("words", word_cases.rows(), {t: bound(t, word_cases.COLUMNS) for t in word_cases.texts()}))
    for family, batch, expressions in cases:
        recorded = feather.read_table(recording(family, "UTC"))
        for text, expression in expressions.items():
            if text.startswith(words):
                checked += 1
                found += differences(text, expression, recorded.column(text), batch, "UTC")
    assert not found, "\n".join(found)
    assert checked > 15, checked


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_encoded_and_large_texts(mode: str) -> None:
    # a registered table may have texts by dictionary, or with offsets of 64 bits; DuckDB computes digests too
    drawn = [None, "", "é", *(f"word {i} \U0001f600" for i in range(2_500))]
    column = pa.array(drawn)
    columns = {"a": column, "b": column.cast(pa.large_string()), "c": column.dictionary_encode()}
    items = [
        f"{name}({c}{others})"
        for c in columns
        for name, others in (("md5", ""), ("sha2", ", 256"), ("base64", ""))
    ]
    items += [
        f"{name}({c}{others})"
        for c in columns
        for name, others in (("initcap", ""), ("find_in_set", ", 'a,é'"))
    ]
    with closing(Session({"execution.runtime-mode": mode, "bounded.backend": "duckdb"})) as session:
        session.register("t", pa.table(columns))
        query = "SELECT a, " + ", ".join(f"{item} AS x{i}" for i, item in enumerate(items)) + " FROM t"
        rows = session.execute(query).final_rows(PATIENCE_S).to_pylist()
    assert len(rows) == len(drawn)
    for row in rows:
        octets = None if row["a"] is None else row["a"].encode()
        digests = (
            [None] * 3
            if octets is None
            else [
                hashlib.md5(octets).hexdigest(),
                hashlib.sha256(octets).hexdigest(),
                base64.b64encode(octets).decode(),
            ]
        )
        words = (
            [None] * 2
            if octets is None
            else [row["a"].replace("w", "W").replace("é", "É"), int(row["a"] == "é") * 2]
        )
        assert [row[f"x{i}"] for i in range(len(items))] == digests * 3 + words * 3


def test_few_rows_need_no_machine_code() -> None:
    calls: list[str] = []
    kernel = kernel_factory.compiled_later(
        lambda *_: calls.append("general") or lit, lambda *_: calls.append("compiled") or lit
    )
    for _ in range(4):
        kernel(pa.nulls(900), pa.scalar(1))
    assert calls == ["general", "general", "compiled", "compiled"]


def test_many_batches_of_one_row_need_machine_code() -> None:
    calls: list[str] = []
    kernel = kernel_factory.compiled_later(
        lambda *_: calls.append("general") or lit, lambda *_: calls.append("compiled") or lit
    )
    for _ in range(25):
        kernel(pa.nulls(1), pa.scalar(1))
        # constants alone
        kernel(pa.scalar(1))
    assert 5 < calls.count("general") < 30 and calls[-1] == "compiled"


def test_machine_code_is_as_python_runs_it() -> None:
    from penstock.engine.kernels.functions import list_sets, number_texts, text_scans

    offsets, data = string_parts(pa.array(["x", "ff1", " -Ab ", "", "zz", "10000000000000000", "0"]).slice(1))
    starts, found = np.array([0, 2, 2, 6]), []
    for way in (lambda kernel: kernel, lambda kernel: kernel.interpreted):
        numbers, marks = np.zeros(6, np.uint64), np.zeros((3, 6), np.uint8)
        way(number_texts.read_numbers)(offsets, data, 16, numbers, *marks)
        ends, out = np.zeros((5, 7), np.int64), np.zeros((5, 400), np.uint8)
        for i, (base, shift) in enumerate([(2, 1), (16, 4), (10, 0), (36, 0)]):
            way(number_texts.write_numbers)(numbers, marks[0], marks[0], base, shift, ends[i], out[i])
        way(text_scans.capitalize)(offsets, data, out[4, 200:])
        way(text_scans.base64)(offsets, data, np.arange(64, dtype=np.uint8), ends[4], out[4])
        ranks, order = np.array([2, 1, 5, 3, 5, 4]), np.zeros(6, np.int64)
        way(list_sets.order_lists)(starts, ranks, order)
        found.append([array.tolist() for array in (numbers, marks, ends, out, ranks, order)])
    assert found[0] == found[1]
