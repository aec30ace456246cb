"""The files and tables that the mistakes of a first hour are made with, and how a case is run."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

import penstock
from penstock.catalog.errors import PenstockError
from tests.sql.bad_inputs.inputs import run_words, steady

MENDED = "\n=>\n"
"""Between what was typed and what the hint leads to, in a case and in its answer."""
ORDERS = """order_id,customer,amount,ordered_at
1,ann,12.5,2024-01-01 10:00:00
2,bob,3.0,2024-01-01 10:20:00
3,ann,7.5,2024-01-01 11:05:00
"""
CLICKS = """user_id,page,ts
1,home,2024-01-01 10:00:00
2,home,2024-01-01 10:10:00
1,cart,2024-01-01 10:50:00
"""
TABLES = """
CREATE TABLE orders (order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP(3))
  WITH ('connector' = 'filesystem', 'path' = 'orders.csv');
CREATE TABLE customers (customer STRING, city STRING)
  WITH ('connector' = 'filesystem', 'path' = 'customers.csv');
CREATE TABLE clicks (user_id BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = 'clicks.csv', 'source.replay' = 'true');
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3');
CREATE TABLE sink (order_id BIGINT, customer STRING, amount DOUBLE, ordered_at TIMESTAMP(3))
  WITH ('connector' = 'blackhole');
"""
_FUNCTIONS = """import penstock


@penstock.udf(["INT"], "INT", mode="row")
def twice(x):
    return 2 * x
"""


def make_files(here: Path) -> None:
    """Lay out the sample files in a directory."""
    codes = {f"codes/{n:02}.csv": f"n,code\n{n},{n}\n" for n in range(1, 11)}
    texts = {
        "orders.csv": ORDERS,
        "orders.dat": ORDERS,
        "orders.xlsx": "PK",
        "clicks.csv": CLICKS,
        "customers.csv": "customer,city\nann,Oslo\nbob,Rome\n",
        "prices.csv": "item;price\ntea;2.5\n",
        "codes.csv": "n,code\n1,17\n2,A7\n",
        # columns are inferred from ten files: the eleventh has another type
        **codes,
        "codes/11.csv": "n,code\n11,A7\n",
        "logs/1.csv": ORDERS,
        "logs/2.csv": ORDERS,
        "mixed/1.csv": ORDERS,
        "mixed/2.json": '{"a": 1}\n',
        "job.sql": "SELECT COUNT(*) AS n FROM 'orders.csv';\n",
        "my_functions.py": _FUNCTIONS,
    }
    for name, text in texts.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text, encoding="utf-8")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(here / "orders.csv"), here / "orders.parquet")


def run_case(text: str) -> str:
    """Run what was typed and what the hint leads to, one after the other in one session."""
    # as streams: DuckDB takes four times as long to start as one of these queries takes
    chosen = {
        "execution.runtime-mode": "streaming",
        "bounded.backend": "duckdb",
        "table.dml-sync": "true",
        "restart-strategy.type": "none",
    }
    with penstock.connect(settings=chosen) as connection:
        for statement in connection.session.parse(TABLES):
            connection.session.run(statement)
        return steady(MENDED.join(_run(connection, part) for part in text.split(MENDED)))


def run_command_lines(text: str) -> str:
    """Run both parts of a case as command lines of ``penstock``."""
    return without_times(MENDED.join(run_words(part) for part in text.split(MENDED)))


def without_times(answers: str) -> str:
    """Leave out how long the rows took, the kernels that this process compiled, one or several, and the prompt
    behind the last input.
    """
    answers = re.sub(r"\d+\.\d+ s\b", "# s", answers)
    told = r"(?:penstock> )?compil(?:ed|ing) [^\n]*kernels?\b[^\n]*"
    return re.sub(rf"\n{told}|\A{told}\n|(?<=>) +(?=\n|$)", "", answers)


def _run(connection: penstock.Connection, text: str) -> str:
    told = ""
    try:
        for statement in connection.session.parse(text):
            try:
                result = connection.session.run(statement)
                rows = result.final_rows(300).to_pylist() if result.has_rows else None
            except PenstockError as error:
                return statement.locate(error).render()
            told = f"accepted: {result.note or 'done'}" if rows is None else _shown(rows)
    except PenstockError as error:
        return error.render()
    return told


def _shown(rows: list[dict[str, object]]) -> str:
    return "\n".join(["accepted: " + ("" if rows else "no rows"), *map(str, rows)]).replace(": \n", ":\n")
