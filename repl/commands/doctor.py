"""``penstock doctor``: what penstock runs on here, what is missing, and the command that mends it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from penstock.catalog.connectors.spark import SPARK
from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.backend_choice import candidates, missing_for_spark
from penstock.engine.bounded.spark.class_data_archive import cache_directory
from penstock.engine.bounded.spark.installation import (
    Finding,
    State,
    numbers,
    package_version,
    spark_findings,
)
from penstock.planner.sql_generator.support import AUTO
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.launch.session_factory import configured, messages_for, refusal_code

# The lower bounds of pyproject.toml.
_OLDEST_PYTHON = (3, 11)
_PACKAGES = (("pyarrow", (18,)), ("numpy", (2,)), ("numba", (0, 61)), ("duckdb", (1, 3)), ("sqlglot", (30,)))


def run_doctor(arguments: argparse.Namespace, parser: Parser) -> int:
    """Print the findings and return the exit code: 1 when something must be mended."""
    try:
        config = configured(arguments, parser)
    except PenstockError as error:
        messages_for(arguments).error(error)
        return refusal_code(error)
    # No session is opened, so the setting's default is repeated here.
    backend = config.settings.get("bounded.backend", AUTO)
    state = arguments.state or config.settings.get("execution.checkpointing.dir")
    findings = [
        *_check_packages(),
        *_check_directories(state),
        *_bounded(backend),
        *(_compiled() if arguments.compile else ()),
    ]
    # A NOTE is for information and never changes the exit code.
    ok = all(finding.state is not State.MISSING for finding in findings)
    if arguments.json:
        sys.stdout.write(
            json.dumps(
                {"ok": ok, "backend": backend, "findings": [asdict(finding) for finding in findings]},
                indent=2,
            )
            + "\n"
        )
    else:
        sys.stdout.writelines(line + "\n" for finding in findings for line in _lines(finding))
    return EXIT_OK if ok else EXIT_QUERY


def _lines(finding: Finding) -> list[str]:
    # Columns of 8 and 16 characters; the second line begins under the third column, at 8 + 1 + 16 + 1.
    line = f"{finding.state.value:<8} {finding.what:<16} {finding.found}"
    return [line] if finding.mend is None else [line, f"{'':<25} mend: {finding.mend}"]


def _check_packages() -> Iterator[Finding]:
    """Python and the packages penstock cannot do without."""
    here = sys.version_info[:3]
    said = f"{'.'.join(map(str, here))}: {sys.executable}"
    fits = here >= _OLDEST_PYTHON
    yield Finding(
        "python", State.OK if fits else State.MISSING, said, None if fits else "install Python 3.11 or later"
    )
    for name, oldest in _PACKAGES:
        found, wanted = package_version(name), ".".join(map(str, oldest))
        if found is None:
            yield Finding(name, State.MISSING, "not installed", f"pip install '{name}>={wanted}'")
        # Numbers and not texts: as a text, 9.0 is later than 18.0.
        elif numbers(found) < oldest:
            yield Finding(
                name,
                State.MISSING,
                f"{found}, penstock needs {wanted} or later",
                f"pip install '{name}>={wanted}'",
            )
        else:
            yield Finding(name, State.OK, found)


def _compiled() -> Iterator[Finding]:
    """Compile the kernels. This imports the engine, so it runs only with ``--compile``."""
    from penstock.engine.kernels.precompile import compile_every_kernel

    started = time.monotonic()
    kernels, missing = compile_every_kernel()
    said = (
        f"{kernels}, {missing} of them compiled now in {time.monotonic() - started:.0f} s"
        if missing
        else f"{kernels}, all compiled before"
    )
    yield Finding("kernels", State.OK, said)


def _check_directories(state: str | None) -> Iterator[Finding]:
    """The directories penstock writes to."""
    yield _written(
        "temporary files", Path(tempfile.gettempdir()), "set TMPDIR to a directory that can be written"
    )
    cache = _written("cache", cache_directory(), "set XDG_CACHE_HOME to a directory that can be written")
    yield (
        cache
        if cache.state is State.OK
        else Finding(cache.what, State.NOTE, f"{cache.found}: Spark starts slower without", cache.mend)
    )
    if state is None:
        yield Finding("state", State.NOTE, "no directory is set: jobs keep their checkpoints in memory", None)
    # A URL may name another machine: doctor connects to none.
    elif "://" in state:
        yield Finding("state", State.NOTE, f"{state} (not asked)")
    else:
        yield _written("state", Path(state), f"mkdir -p {state}, or name another directory with --state")


def _written(what: str, directory: Path, mend: str) -> Finding:
    """Whether a file can be made there, or the directory where there is none."""
    # A directory that does not exist yet is made by the job: the nearest one above it decides.
    place = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    try:
        if not place.is_dir():
            raise NotADirectoryError(f"{place} is no directory")
        # A file is created and removed: permission bits alone do not prove that it can be.
        handle, name = tempfile.mkstemp(prefix=".penstock-doctor-", dir=place)
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        return Finding(what, State.MISSING, f"{directory} cannot be written: {error.strerror or error}", mend)
    return Finding(what, State.OK, f"{directory}" if place == directory else f"{directory} (can be made)")


def _bounded(backend: str) -> Iterator[Finding]:
    """Check the bounded backend; where DuckDB can answer, a missing Spark is only a note."""
    if backend != AUTO:
        said = f"run on {backend}"
    elif (missing := missing_for_spark()) is None:
        said = "run on spark; small local inputs on duckdb while no Spark is up (bounded.backend = auto)"
    else:
        said = f"run on duckdb (bounded.backend = auto): {missing}"
    yield Finding("bounded queries", State.OK, said)
    for finding in spark_findings():
        needed = SPARK in candidates(backend) or finding.state is not State.MISSING
        yield finding if needed else Finding(finding.what, State.NOTE, finding.found, finding.mend)
