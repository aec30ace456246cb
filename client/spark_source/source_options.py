"""The options of the data source: what to read, from which commit, which columns, how much at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from penstock.catalog.errors import PenstockError
from penstock.client.spark_source.committed_files import CommittedFiles

_KNOWN = (
    "path",
    "view",
    "checkpoint",
    "columns",
    "startingCommit",
    "endingCommit",
    "maxRowsPerTrigger",
    "pushFilters",
)
_ONLY_VIEWS, _ONLY_COMMITS, _ONLY_STREAMS, _ONLY_BATCH = (
    ("checkpoint",),
    ("startingCommit", "endingCommit"),
    ("maxRowsPerTrigger",),
    ("endingCommit",),
)


@dataclass(frozen=True)
class SourceOptions:
    """Checked options. ``starting``: the first commit to read, -1 for only later ones; ``ending``: the last,
    None for the newest.
    """

    path: Path
    view: str | None
    checkpoint: int | None
    columns: tuple[str, ...] | None
    starting: int
    ending: int | None
    rows_per_trigger: int | None
    push_filters: bool

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
        """Return the checked options of a read. ``streaming`` is None while it is not known whether the read
        is a stream.

        DAT-4620 for a missing path, DAT-4621 for an unknown option or an invalid value.
        """
        # Spark's option names are case-insensitive
        given = {key.lower(): value for key, value in options.items()}
        known = {key.lower(): key for key in _KNOWN}
        for key in given:
            if key not in known:
                raise _refused(f"there is no option {key}", f"the options are {', '.join(_KNOWN)}")
        if not given.get("path"):
            message = "option path is missing"
            raise PenstockError(
                "DAT-4620",
                message,
                hint=".load('the directory of a table'), or of jobs' states with option view",
                sqlstate="42000",
            )
        view = given.get("view")
        kind = "a materialized view" if view else "a stream" if streaming else "a batch"
        never: tuple[str, ...] = (*_ONLY_COMMITS, *_ONLY_STREAMS, "pushFilters") if view else _ONLY_VIEWS
        # schema() does not know yet whether the read is a batch or a stream
        if not view and streaming is not None:
            never += _ONLY_BATCH if streaming else _ONLY_STREAMS
        # an option without effect would mislead: refuse it
        for key in never:
            if key.lower() in given:
                raise _refused(f"option {key} is not for {kind}", "leave it out")
        text = given.get("startingcommit", "0")
        # a batch from "latest" on would have no rows: there it is an invalid number
        latest = streaming is not False and text.lower() == "latest"
        columns = given.get("columns")
        return cls(
            _directory(given["path"]),
            view,
            _number("checkpoint", given.get("checkpoint")),
            None if columns is None else tuple(name.strip() for name in columns.split(",")),
            -1 if latest else _number("startingCommit", text) or 0,
            _number("endingCommit", given.get("endingcommit")),
            _number("maxRowsPerTrigger", given.get("maxrowspertrigger"), least=1),
            _truth("pushFilters", given.get("pushfilters", "false")),
        )

    def log(self) -> CommittedFiles:
        """Return the commit log of the directory."""
        return CommittedFiles(self.path)


def _directory(text: str) -> Path:
    url = urlparse(text)
    if url.scheme not in ("", "file"):
        raise _refused(
            f"{url.scheme}:// cannot be read",
            "give a directory that every worker of Spark can reach by its path",
        )
    return Path(unquote(url.path) if url.scheme else text)


def _number(key: str, text: str | None, least: int = 0) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < least:
        raise _refused(f"option {key} is '{text}'", f"give a whole number, at least {least}")
    return int(text)


def _truth(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _refused(f"option {key} is '{text}'", "give true or false")
    return text.lower() == "true"


def _refused(message: str, hint: str) -> PenstockError:
    return PenstockError("DAT-4621", message, hint=hint, sqlstate="42000")
