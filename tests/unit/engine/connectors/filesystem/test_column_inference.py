"""The columns of files that no table declares: formats by name, footers, samples, partitions, and what is
refused.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import InferredFiles
from penstock.engine.connectors.filesystem.column_inference import SAMPLE_BYTES, FileInference


def inferred(path: Path, **options: str) -> InferredFiles:
    files = FileInference()
    table = {key.replace("_", ".", 1).replace("_", "-"): text for key, text in options.items()}
    return files.columns({"path": str(path), "format": files.format(str(path)), **table})


def columns(found: InferredFiles) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in found.fields)


def write(path: Path, content: str | dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content)
    else:
        pq.write_table(pa.table(content), path)
    return path


def test_parquet_and_arrow_files_have_exactly_the_types_of_their_footers(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.int8()),
            "u": pa.array([1], pa.uint32()),
            "d": pa.array([None], pa.decimal128(10, 2)),
            "t": pa.array([0], pa.timestamp("ns")),
            "z": pa.array([0], pa.timestamp("ms", "UTC")),
            "é `x`": pa.array([[{"k": 1}]]),
            "w": pa.array(["x"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    wanted = (
        "a TINYINT, u BIGINT, d DECIMAL(10, 2), t TIMESTAMP(6), z TIMESTAMP_LTZ(6), "
        "é `x` ARRAY<ROW<k BIGINT>>, w STRING"
    )
    assert columns(inferred(tmp_path / "a.parquet")) == wanted
    assert columns(inferred(tmp_path / "a.arrow")) == wanted


def test_a_column_without_a_name_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], names=["", "b"]), tmp_path / "a.parquet")
    found = inferred(tmp_path / "a.parquet")
    assert columns(found) == "b BIGINT"
    assert "a column without a name is left out" in found.basis


def test_files_of_a_directory_have_their_widest_type_and_partitions_are_columns(tmp_path: Path) -> None:
    write(tmp_path / "year=2023/day=2024-01-02/c=x/a.parquet", {"n": pa.array([1], pa.int32()), "year": [1]})
    write(tmp_path / "year=2024/day=2024-01-03/c=1/a.parquet", {"n": pa.array([1], pa.int64()), "year": [1]})
    found = inferred(tmp_path)
    # the directory's value is the column, as in DuckDB and Spark
    assert columns(found) == "n BIGINT, year BIGINT, day DATE, c STRING"
    assert found.partitioned_by == ("year", "day", "c")
    assert found.basis == "parquet, the types of all 2 files"


def test_csv_files_of_a_table_have_the_type_that_reads_the_texts_of_all(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,big,at,nothing,mixed,empty,text\n24,1,2024-01-05,,7,,"a\nb"\n')
    (tmp_path / "b.csv").write_text(
        f"n,big,at,nothing,mixed,empty,text\n4.5,{10**30},2024-01-05 10:00:00,8,2024-01-05,,c\n"
    )
    (tmp_path / "c.csv").write_text("\n")
    found = inferred(tmp_path)
    expected = (
        "n DOUBLE, big DECIMAL(38, 0), at TIMESTAMP(6), nothing BIGINT, mixed STRING, "
        "empty STRING, text STRING"
    )
    assert columns(found) == expected
    assert found.options == {"csv.multiline": "true"}


def test_a_directory_without_suffixes_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    write(tmp_path / "part-00000", {"n": [1]})
    assert columns(inferred(tmp_path)) == "n BIGINT"


@pytest.mark.parametrize(
    ("others", "options", "code", "message", "hint"),
    [
        ({"b": [1]}, {}, "DAT-4203", "has a column a, ", "'source.missing-columns' = 'null'"),
        ({"a": ["x"]}, {}, "DAT-4205", "column a is BIGINT in ", "two tables"),
        ({"a": [1], "A": [2]}, {}, "DAT-4208", "two columns called a", "rename one"),
    ],
)
def test_files_that_differ_are_refused(
    tmp_path: Path, others: dict[str, object], options: dict[str, str], code: str, message: str, hint: str
) -> None:
    write(tmp_path / "a.parquet", {"a": [1]})
    write(tmp_path / "b.parquet", others)
    with pytest.raises(PenstockError) as caught:
        inferred(tmp_path, **options)
    assert caught.value.code == code
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_a_column_that_some_files_lack_is_null_there_where_the_table_says_so(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "a,b\n1,x\n")
    write(tmp_path / "b.csv", "a,c\n1.5,2024-01-01\n")
    assert columns(inferred(tmp_path, source_missing_columns="null")) == "a DOUBLE, b STRING, c DATE"


def test_a_sample_is_stated_and_a_whole_file_is(tmp_path: Path) -> None:
    found = inferred(write(tmp_path / "a.csv", "a,b\n" + "1,x\n" * 10))
    assert found.basis == f"csv, types that fit all rows of {tmp_path}/a.csv"
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write("a,b\n" + "1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" * (SAMPLE_BYTES // 30))
    found = inferred(tmp_path / "b.csv.gz")
    assert columns(found) == "a BIGINT, b STRING"
    assert found.basis.startswith("csv, types that fit the first ")


@pytest.mark.parametrize(
    ("name", "content", "code", "message", "hint"),
    [
        ("empty.csv", "", "DAT-4120", "is empty", "declare the columns"),
        ("empty.parquet", "", "DAT-4120", "is empty", "declare the columns"),
        ("blank.csv", "\n\n", "DAT-4120", "has no records", "declare the columns"),
        ("a.log", "x y\n", "DAT-4124", "does not say its format", "read_csv('"),
        ("a.xlsx", "PK", "DAT-4124", "does not say its format", "save the sheet as csv"),
        ("a.parquet", "no parquet", "DAT-4105", "cannot be read", "is it of the format"),
        ("a.csv", "a\0b,c\n\0\n", "DAT-4121", "no text file", "'format'"),
        (".hidden/a.csv", "a\n1\n", "DAT-4120", "no files to read", "names that begin with"),
    ],
)
def test_files_that_say_no_columns_are_refused(
    tmp_path: Path, name: str, content: str, code: str, message: str, hint: str
) -> None:
    write(tmp_path / name, content)
    with pytest.raises(PenstockError) as caught:
        inferred(tmp_path if name.startswith(".") else tmp_path / name)
    assert caught.value.code == code
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_a_directory_of_several_formats_or_depths_is_refused_with_a_path_that_works(tmp_path: Path) -> None:
    write(tmp_path / "m/a.parquet", {"a": [1]})
    write(tmp_path / "m/b.csv", "a\n1\n")
    with pytest.raises(PenstockError, match="several formats") as caught:
        inferred(tmp_path / "m")
    path = str(caught.value.hint).split("'")[1]
    assert columns(inferred(Path(path))) == "a BIGINT"
    write(tmp_path / "d/k=1/a.parquet", {"a": [1]})
    write(tmp_path / "d/b.parquet", {"a": [1]})
    with pytest.raises(PenstockError, match="in no directory k="):
        inferred(tmp_path / "d")


def test_columns_are_remembered_until_a_file_changes(tmp_path: Path) -> None:
    files, path = FileInference(), write(tmp_path / "a.csv", "a\n1\n")
    options = {"path": str(path), "format": "csv"}
    first = files.columns(options)
    assert files.columns(options) is first
    path.write_text("a,b\n1,2\n")
    assert columns(files.columns(options)) == "a BIGINT, b BIGINT"
