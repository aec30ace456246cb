"""The first GROUP BY of a machine: from import to all rows of a bounded table of a thousand. With an empty
``NUMBA_CACHE_DIR`` no kernel is compiled yet, as after an installation.
"""

from __future__ import annotations

import penstock

with penstock.connect() as connection:
    connection.execute("SET 'execution.runtime-mode' = 'streaming'")
    connection.execute(
        "CREATE TEMPORARY TABLE orders (customer BIGINT, amount BIGINT) WITH ('connector' = 'datagen', "
        "'number-of-rows' = '1000', 'fields.customer.min' = '0', 'fields.customer.max' = '9')"
    )
    rows = connection.execute(
        "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer"
    ).fetchall()
    assert len(rows) == 10, rows
