"""Functions of a program, for CREATE FUNCTION to import."""

from __future__ import annotations

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


def plain(number: int) -> int:
    return number
