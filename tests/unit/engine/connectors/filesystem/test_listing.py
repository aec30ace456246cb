"""Listings: which files a path names, in which order, and the ids of splits by their content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from tests.harness.length import examples

FILES = ("a.csv", "b/c.csv", "b/d/e.csv", "k=1/_x=2/f.csv", "b[1].csv", "z.csv")
HIDDEN = (".a.csv", "_b.csv", "b/.tmp/c.csv", "_temporary/d.csv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*FILES, *HIDDEN):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def listed(root: Path, path: str = "") -> list[str]:
    return [
        os.path.relpath(split.path, root)
        for split in FileListing(f"{root}/{path}".rstrip("/"), "csv").files()
    ]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", sorted(FILES)),
        ("b", ["b/c.csv", "b/d/e.csv"]),
        ("a.csv", ["a.csv"]),
        ("*.csv", ["a.csv", "b[1].csv", "z.csv"]),
        ("?.csv", ["a.csv", "z.csv"]),
        ("[a-b].csv", ["a.csv"]),
        ("[!a].csv", ["z.csv"]),
        ("b/*/e.csv", ["b/d/e.csv"]),
        ("**/c.csv", ["b/c.csv"]),
        ("b/**/e.csv", ["b/d/e.csv"]),
        ("b[1].csv", ["b[1].csv"]),
    ],
)
def test_a_path_names_files_in_order_and_no_hidden_ones(root: Path, path: str, names: list[str]) -> None:
    assert listed(root, path) == names
    assert FileListing(f"file://{root}/b", "csv").files() == FileListing(f"{root}/b", "csv").files()


def test_what_names_no_file_is_refused_unless_it_may_come_later(root: Path) -> None:
    for path, code in (("nothing", "DAT-41"), ("*.txt", "DAT-4102")):
        listing = FileListing(f"{root}/{path}", "csv")
        with pytest.raises(PenstockError, match=code):
            listing.files()
        assert listing.files(missing_ok=True) == []
    with pytest.raises(PenstockError, match="DAT-4109"):
        FileListing("nothing://host/path", "csv")


def test_the_current_state_of_a_file_and_its_name_below_the_table(root: Path) -> None:
    listing = FileListing(str(root), "csv")
    (first, *_) = listing.files()
    assert listing.relative(first.path) == "a.csv" and listing.current(first.path) == first
    with open(first.path, "a", encoding="utf-8") as file:
        file.write("more\n")
    changed = listing.current(first.path)
    assert changed is not None and changed.size == first.size + 5 and changed.split_id != first.split_id
    os.unlink(first.path)
    assert listing.current(first.path) is None


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    st.text(min_size=1, max_size=9).map("/{}".format) | st.just("/a@1-2#3-4"),
    st.integers(0, 2**40),
    st.integers(0, 2**50),
    st.none() | st.tuples(st.integers(0, 10**14), st.integers(0, 10**14)),
)
def test_a_split_is_named_by_its_id(path: str, size: int, mtime: int, cut: tuple[int, int] | None) -> None:
    split = FileSplit(path, size, mtime, cut)
    assert FileSplit.parse(split.split_id) == split


def test_ranges_of_a_file_sort_in_their_order_and_other_texts_are_refused() -> None:
    ids = [FileSplit("/a", 10**12, 1, (start, start + 9)).split_id for start in (0, 9, 10, 99, 10**11)]
    assert ids == sorted(ids)
    with pytest.raises(PenstockError, match="STA-3501"):
        FileSplit.parse("no split")
