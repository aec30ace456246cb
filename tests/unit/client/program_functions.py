"""Functions of a program, for CREATE FUNCTION to import."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock


@penstock.udf(["BIGINT", "STRING"], "DOUBLE")
def weigh(number: pa.Array, text: pa.Array) -> pa.Array:
    return pc.add(pc.cast(number, pa.float64()), pc.cast(pc.utf8_length(text), pa.float64()))


@penstock.udf(["BIGINT"], "STRING", mode="row")
def tell(number: int | None) -> str | None:
    return None if number is None else f"<{10 // number}>"


@penstock.udf([], "INT")
def seven() -> int:
    return 7


@penstock.udf(["BIGINT"], "BIGINT")
def shortened(number: pa.Array) -> pa.Array:
    return number[:1]


@penstock.udf(["BIGINT"], "BIGINT")
def worded(number: pa.Array) -> pa.Array:
    return pc.cast(number, pa.string()).fill_null("none")


@penstock.udf(["BIGINT"], "BIGINT", deterministic=False)
def wavering(number: pa.Array) -> pa.Array:
    return number


@penstock.udaf(["DOUBLE", "DOUBLE"], "DOUBLE")
def weighted_mean(offsets: np.ndarray, value: pa.Array, weight: pa.Array) -> np.ndarray:
    values, weights = (np.nan_to_num(column.to_numpy(zero_copy_only=False)) for column in (value, weight))
    products, totals = (np.concatenate([[0.0], np.cumsum(part)]) for part in (values * weights, weights))
    with np.errstate(all="ignore"):
        return np.diff(products[offsets]) / np.diff(totals[offsets])


@penstock.udaf(["STRING"], "STRING", mode="row")
def longest(texts: pa.Array) -> str | None:
    given = [text for text in texts.to_pylist() if text is not None]
    return max(given, key=len) if given else None


@penstock.udaf(["DOUBLE", "DOUBLE"], "DOUBLE")
def sum_of_products(offsets: np.ndarray, one: pa.Array, other: pa.Array) -> np.ndarray:
    return np.add.reduceat(
        np.nan_to_num(pc.multiply(one, other).to_numpy(zero_copy_only=False)), offsets[:-1]
    )


@penstock.udaf(["STRING"], "STRING", mode="row")
def first_text(texts: pa.Array) -> str | None:
    return texts[0].as_py()


@penstock.udaf(["BIGINT"], "BIGINT", mode="row")
def failing(numbers: pa.Array) -> int:
    raise KeyError("no")


@penstock.udaf(["DOUBLE", "BIGINT"], "STRING", mode="row")
def rows_seen(first: pa.Array, second: pa.Array) -> str:
    return "|".join(
        f"{a:g} {b}" if a is not None else f"{a} {b}"
        for a, b in zip(first.to_pylist(), second.to_pylist(), strict=True)
    )


@penstock.udaf(["BIGINT"], "BIGINT")
def too_few(offsets: np.ndarray, number: pa.Array) -> np.ndarray:
    return offsets[:1]


@penstock.udtf(["STRING"], {"word": "STRING", "letters": "INT"}, mode="row")
def words(text: str | None) -> Iterator[tuple[str, int]]:
    for word in (text or "").split():
        yield word, len(word)


@penstock.udtf(["BIGINT"], {"i": "BIGINT"})
def upto(number: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    counts = number.fill_null(0).to_numpy()
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


@penstock.udtf(["BIGINT"], {"i": "BIGINT"})
def backwards(number: pa.Array) -> tuple[np.ndarray, pa.Array]:
    return np.arange(len(number))[::-1], number


@penstock.udtf([], {"n": "INT"}, mode="row")
def two() -> list[int]:
    return [1, 2]


def plain(number: int) -> int:
    return number
