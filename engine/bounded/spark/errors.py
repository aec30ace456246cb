"""Spark's errors as PenstockErrors: condition, SQLSTATE and the first line of the message."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import Any

from penstock.catalog.errors import Kind, PenstockError

# SQLSTATE classes the user can mend: data, cardinality, external routine, syntax or access
_USER_CLASSES = ("22", "21", "38", "42")
# classes of errors about a value, whose text may hold any word, also "OutOfMemoryError"
_OF_VALUES = ("21", "22", "42")
_TYPE_HINT = "SET 'bounded.backend' = 'duckdb' runs the same plan without Spark"
# the end of a hint, from its advice to use DuckDB on
_ELSEWHERE = re.compile(r"(?:[;,] or )?SET 'bounded\.backend' = 'duckdb'.*$")
# org.apache.spark.SparkException: java.lang.X: .. -> ..
_JAVA_PREFIX = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")
# [DIVIDE_BY_ZERO] Division by zero -> Division by zero
_CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]+\] ")
# texts of cancelled jobs and operations, of classic Spark and of Spark Connect
_CANCELLED = (
    "SPARK_JOB_CANCELLED",
    "cancelled part of cancelled job",
    "OPERATION_CANCELED",
    "job was cancelled",
)
_WORKER_DIED = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "Python worker has been killed",
)
_NO_MEMORY = (
    "OutOfMemoryError",
    "UNABLE_TO_ACQUIRE_MEMORY",
    "\nMemoryError",
    "KILLED_BY_OOM",
    "Container killed",
)
# class names of what Py4J raises when the virtual machine no longer answers
_GONE = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "EOFError", "Py4JError")
_HINTS = {
    "PATH_NOT_FOUND": "the files were there when the query was planned: was one removed or renamed "
    "meanwhile?",
    "FAILED_READ_FILE.FILE_NOT_EXIST": "the files were there when the query was planned: run it again, or "
    "REFRESH TABLE in Spark",
    "TABLE_OR_VIEW_NOT_FOUND": "SHOW TABLES of a catalog of 'type' = 'spark' lists those there are",
    "SCHEMA_NOT_FOUND": "SHOW DATABASES of a catalog of 'type' = 'spark' lists those there are",
    "ARITHMETIC_OVERFLOW": "CAST to a wider type before the arithmetic",
    "CAST_OVERFLOW": "write TRY_CAST to get NULL for what does not fit",
    "CAST_INVALID_INPUT": "write TRY_CAST to get NULL for what cannot be read",
    "DIVIDE_BY_ZERO": "write NULLIF(divisor, 0) to get NULL",
}


def spark_failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions a call into Spark may raise; where Spark is not installed, none are Spark's."""
    # an empty tuple in ``except`` catches nothing
    if find_spec("pyspark") is None:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, OSError, EOFError)


def start_refused(error: BaseException) -> PenstockError:
    """Return BND-5025 for a Spark that does not start with its settings."""
    try:
        match = re.search(r"(?:[\w.$]+(?:Exception|Error)): ((?!An error occurred).+)", str(error))
        why = match[1] if match is not None else _first_line(str(error))
    except spark_failures():  # the text is asked of a machine that is gone
        why = "its Java virtual machine has ended"
    hint = "look at what was set of 'spark.*', in the session and in spark-defaults.conf"
    return PenstockError(
        "BND-5025", f"Spark does not start: {why}"[:400], hint=hint, kind=Kind.USER, sqlstate="58000"
    )


def spark_error(error: BaseException, last_words: str = "") -> PenstockError:
    """Return an error of PySpark or Py4J as a PenstockError. It has Spark's condition and SQLSTATE, the
    fragment of Spark's text, and a hint.

    BND-5003 query, 5004 a worker died, 5006 cancelled, 5008 the virtual machine died. 5017 tasks cannot reach
    us, 5018 a server refused us, 5019 out of memory, 5026 workers run another Python.
    """
    text = str(error)
    # cancelled first: a cancelled job fails with many other errors in its wake
    if any(word in text for word in _CANCELLED):
        return PenstockError("BND-5006", "the bounded query was cancelled", sqlstate="57014")
    # our own task says in these words that it cannot connect to our listener
    unreachable = re.search(r"PENSTOCK_UNREACHABLE (\S+) from (\S+): ([^\n]*)", text)
    if unreachable is not None:
        return _unreachable(*unreachable.groups())
    # Python of another version, or without a module: no retry helps
    version = re.search(r"different version: v?(\d+\.\d+)|PYTHON_VERSION_MISMATCH\D*(\d+\.\d+)", text)
    if version is not None and "PYTHON_VERSION_MISMATCH" in text:
        return other_python(version[1] or version[2])
    absent = re.search(r"^\s*ModuleNotFoundError: No module named '([\w.]+)'", text, re.MULTILINE)
    if absent is not None and "Traceback" in text:
        return without_module(absent[1])
    # out of memory before "worker died": the kernel's killer causes both
    if (
        any(word in text for word in _NO_MEMORY)
        and str(_call_method(error, "getSqlState"))[:2] not in _OF_VALUES
    ):
        return _out_of_memory("\nMemoryError" in text, _first_line(text))
    if any(word in text for word in _WORKER_DIED):
        detail = _first_line(text)
        return PenstockError(
            "BND-5004",
            "a Python worker of Spark died",
            detail=detail,
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="58000",
        )
    # gRPC's status codes of a Spark Connect server
    if "StatusCode.UNAUTHENTICATED" in text or "StatusCode.PERMISSION_DENIED" in text:
        return _refused(text)
    if type(error).__name__ in _GONE or "StatusCode.UNAVAILABLE" in text:
        return machine_gone(last_words or _first_line(text))
    return _of_the_query(error, text)


def other_python(version: str, detail: str | None = None) -> PenstockError:
    """Return BND-5026 for workers whose Python is not of our version."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    message = (
        f"Spark's workers run Python {version}, this program Python {ours}: functions and rows cannot "
        "go from one to the other"
    )
    hint = f"set PYSPARK_PYTHON to a Python {ours} with pyarrow, or unset it"
    return PenstockError("BND-5026", message, detail=detail, hint=hint, kind=Kind.USER, sqlstate="58000")


def without_module(name: str, detail: str | None = None) -> PenstockError:
    """Return BND-5026 for workers whose Python lacks a module."""
    message = f"the Python of Spark's workers has no module {name}"
    hint = "set PYSPARK_PYTHON to a Python that has it (rows go through pyarrow), or install it there"
    return PenstockError("BND-5026", message, detail=detail, hint=hint, kind=Kind.USER, sqlstate="58000")


def for_spark_alone(error: PenstockError) -> PenstockError:
    """Return an error of a query that only Spark can run, without the advice to run it on DuckDB."""
    error.hint = _ELSEWHERE.sub("", error.hint or "") or None
    return error


def _of_the_query(error: BaseException, text: str) -> PenstockError:
    """Return an error of the query itself."""
    condition, sqlstate = _call_method(error, "getCondition"), _call_method(error, "getSqlState")
    # an error inside a task has only its text
    if condition is None:
        match = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", text)
        condition = match[1] if match else None
    # the line after the indented frames of a Python traceback names the exception
    raised = re.search(r"Traceback[^\n]*\n(?:  [^\n]*\n)*(\w[^\n]*)", text)
    message = f"Python raised {raised[1]}" if raised is not None else _CONDITION.sub("", _first_line(text))
    # for an error of the user's own, DuckDB would report the same: no advice to use it
    user = sqlstate is not None and sqlstate[:2] in _USER_CLASSES
    return PenstockError(
        "BND-5003",
        f"the bounded query failed on Spark: {message}"[:400],
        detail=" ".join(filter(None, (condition, _query_fragment(error)))) or None,
        hint=_suggested(error) or _HINTS.get(condition or "", None if user else _TYPE_HINT),
        kind=Kind.USER if user else Kind.EXTERNAL,
        sqlstate=sqlstate or "58000",
    )


def _query_fragment(error: BaseException) -> str | None:
    """Return the fragment of Spark's text in which the error arose."""
    # objects of the virtual machine, each with the fragment of text it is about
    contexts = _call_method(error, "getQueryContext") or ()
    fragments = [fragment for context in contexts if (fragment := _call_method(context, "fragment"))]
    return f"in {fragments[0][:120]}" if fragments else None


def _suggested(error: BaseException) -> str | None:
    """Return the names Spark proposes instead."""
    proposal = (_call_method(error, "getMessageParameters") or {}).get("proposal")
    return f"Spark knows {proposal}" if proposal else None


def _unreachable(address: str, machine: str, reason: str) -> PenstockError:
    message = f"tasks of Spark cannot reach this process at {address}"
    hint = (
        "SET 'spark.results.host' (and 'spark.results.port') to an address of this machine that Spark's "
        "machines can connect to"
    )
    return PenstockError(
        "BND-5017", message, detail=f"on {machine}: {reason}", hint=hint, kind=Kind.EXTERNAL, sqlstate="08001"
    )


def _out_of_memory(python: bool, detail: str) -> PenstockError:
    which, setting = (
        ("Python worker", "spark.executor.pyspark.memory")
        if python
        else ("virtual machine", "spark.driver.memory")
    )
    hint = (
        f"give it more: {setting} in spark-defaults.conf, or as an option of the first catalog of "
        "Spark; or select fewer rows at a time"
    )
    return PenstockError(
        "BND-5019",
        f"a {which} of Spark ran out of memory",
        detail=detail,
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="53200",
    )


def _refused(text: str) -> PenstockError:
    details = re.search(r'details = "([^"]*)"', text)
    hint = "SPARK_REMOTE takes a token: sc://host:port/;token=.., or in SPARK_CONNECT_AUTHENTICATE_TOKEN"
    message = f"the server of Spark Connect refuses us{': ' + details[1] if details else ''}"
    return PenstockError("BND-5018", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="28000")


def machine_gone(detail: str | None) -> PenstockError:
    """Return the error of calls into a Spark that has ended."""
    if detail is not None and "OutOfMemoryError" in detail:
        return _out_of_memory(False, detail)
    message = "the Java virtual machine of Spark is gone"
    hint = "the next query starts a new one"
    return PenstockError(
        "BND-5008",
        message,
        detail=detail or None,
        hint=hint,
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="58000",
    )


def _call_method(error: Any, method: str) -> Any:
    """Return the result of an error's method; ``None`` when it has none or its virtual machine does not
    answer.
    """
    ask = getattr(error, method, None)
    if ask is None:
        return None
    try:
        return ask()
    # Py4J raises these for an object whose machine has ended
    except (OSError, RuntimeError, AttributeError, TypeError):
        return None
    except spark_failures():
        return None


def _first_line(text: str) -> str:
    """Return the first informative line, without Java's class names, the position and the query context."""
    # the line with a condition in brackets is the cause; a stack trace has it after wrapping exceptions
    match = re.search(r"(?:SparkException|Exception|Error): (\[[A-Z][A-Z0-9_.]+\][^\n]*)", text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    line = (
        match[1]
        if match
        else next(
            (line for line in lines if not line.startswith(("An error occurred", "Traceback"))), "no message"
        )
    )
    return _JAVA_PREFIX.sub("", re.sub(r" SQLSTATE: \w{5}\b.*$", "", line.lstrip(": "))).lstrip(": ")
