"""The rows of feeds as bounded tables of a backend."""

from __future__ import annotations

from penstock.client.session import Session
from tests.harness.direct.feeds import Feed

# Few rows: Spark would spend its time on compiling classes for each stage and expression, on collecting what
# it has thrown away, and on tasks without rows. Of 0.55 s of Java's processor time a query, 0.27 s are left.
_CHEAP: dict[str, dict[str, str]] = {
    "spark": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.master": "local[2]",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
    },
}


def bounded_session(tables: dict[str, Feed], backend: str) -> Session:
    """Return a session that has all rows of the feeds, and asks a backend."""
    session = Session(
        {"execution.runtime-mode": "batch", "bounded.backend": backend, **_CHEAP.get(backend, {})}
    )
    for name, feed in tables.items():
        session.register(
            name,
            feed.table(),
            time_column=feed.time_column,
            delay=feed.delay if feed.time_column else None,
            stream=False,
        )
    return session
