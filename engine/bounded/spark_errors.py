"""Spark's errors as ours: its condition, its SQLSTATE, the first line of what it says."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from catalog.errors import Kind, PenstockError

_USER_CLASSES = ("22", "21", "42")
_TYPE_HINT = "SET 'bounded.backend' = 'duckdb' runs the same plan without Spark"
_JAVA_PREFIX = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")


def spark_failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions a call into Spark may raise; where Spark is not installed, none are Spark's."""
    if find_spec("pyspark") is None:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, OSError, EOFError)


def spark_error(error: BaseException, last_words: str = "") -> PenstockError:
    """Return an error of PySpark or Py4J as BND-5003 (query), 5004 (worker died), 5006 (cancelled) or 5008 (virtual machine died)."""
    text = str(error)
    if "SPARK_JOB_CANCELLED" in text or "cancelled part of cancelled job" in text or "OPERATION_CANCELED" in text:
        return PenstockError("BND-5006", "the bounded query was cancelled", sqlstate="57014")
    unreachable = re.search(r"PENSTOCK_UNREACHABLE (\S+) from (\S+): ([^\n]*)", text)
    if unreachable is not None:
        message = f"tasks of Spark cannot reach this process at {unreachable[1]}"
        hint = "SET 'spark.results.host' (and 'spark.results.port') to an address of this machine that Spark's machines can connect to"
        detail = f"on {unreachable[2]}: {unreachable[3]}"
        return PenstockError("BND-5017", message, detail=detail, hint=hint, kind=Kind.EXTERNAL, sqlstate="08001")
    if "Python worker exited unexpectedly" in text or "Python worker failed to connect back" in text:
        detail = _first_line(text)
        return PenstockError("BND-5004", "a Python worker of Spark died", detail=detail, kind=Kind.EXTERNAL, retriable=True, sqlstate="58000")
    if type(error).__name__ in ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "EOFError", "Py4JError"):
        detail = last_words or _first_line(text)
        message = "the Java virtual machine of Spark is gone"
        return PenstockError("BND-5008", message, detail=detail, kind=Kind.EXTERNAL, retriable=True, sqlstate="58000")
    condition, sqlstate = _asked(error, "getCondition"), _asked(error, "getSqlState")
    message = _first_line(text)
    if condition is None:
        found = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", text)
        condition = found[1] if found else None
    user = sqlstate is not None and sqlstate[:2] in _USER_CLASSES
    return PenstockError(
        "BND-5003",
        f"the bounded query failed on Spark: {message}"[:400],
        detail=condition,
        hint=None if user else _TYPE_HINT,
        kind=Kind.USER if user else Kind.EXTERNAL,
        sqlstate=sqlstate or "58000",
    )


def _asked(error: Any, method: str) -> str | None:
    """What an error says of itself, when it has the method and the machine behind it still answers."""
    ask = getattr(error, method, None)
    if ask is None:
        return None
    try:
        return ask()
    except (OSError, RuntimeError, AttributeError, TypeError):
        return None


def _first_line(text: str) -> str:
    """The first line that says something, without Java's class names and the query context."""
    found = re.search(r"(?:SparkException|Exception|Error): (\[[A-Z][A-Z0-9_.]+\][^\n]*)", text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    line = found[1] if found else next((line for line in lines if not line.startswith(("An error occurred", "Traceback"))), "no message")
    return _JAVA_PREFIX.sub("", re.sub(r" SQLSTATE: \w{5}$", "", line)).lstrip(": ")
