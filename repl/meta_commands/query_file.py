"""The file of named queries: one TOML text a name."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError


def names_of_queries(path: Path) -> list[str]:
    """Return the names for completion; none when the file cannot be read."""
    try:
        return sorted(read_queries(path))
    except PenstockError:
        return []


def read_queries(path: Path) -> dict[str, str]:
    """Return the queries by name; none when there is no file yet. CLI-6120 when it cannot be read."""
    import tomllib  # not before the names are asked for

    try:
        queries = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PenstockError(
            "CLI-6120", f"cannot read {path}", detail=str(error), kind=Kind.EXTERNAL, sqlstate="F0000"
        ) from error
    return {name: str(query) for name, query in queries.items()}


@contextmanager
def changed_queries(path: Path) -> Iterator[dict[str, str]]:
    """Yield the queries to change, and write them afterwards; another session waits until then. CLI-6120 when
    the file cannot be read, CLI-6131 when it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a file of its own: the file of queries is replaced while others wait for it
        lock = path.with_name(path.name + ".lock").open("ab")
    except OSError as error:
        raise _not_written(path, error) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        queries = read_queries(path)
        yield queries
        try:
            _write(path, queries)
        except OSError as error:
            raise _not_written(path, error) from error


def _write(path: Path, queries: Mapping[str, str]) -> None:
    # A text of JSON is a text of TOML.
    lines = [f"{json.dumps(name)} = {json.dumps(query)}\n" for name, query in sorted(queries.items())]
    beside = path.with_name(path.name + ".new")
    # Nobody else may read it: a query may contain a password.
    with os.fdopen(
        os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.writelines(lines)
    # Whole: a session that ends here leaves the old file.
    beside.replace(path)


def _not_written(path: Path, error: OSError) -> PenstockError:
    return PenstockError(
        "CLI-6131",
        f"cannot write {path}: {(error.strerror or str(error)).lower()}",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )
