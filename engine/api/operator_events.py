"""What operators tell beside their rows: to the job's master, and through it to operators of other tasks."""

from __future__ import annotations

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class JoinKeys:
    """Keys of the loaded side of a join: distinct ones, or (not ``exact``) two rows, the least and the
    greatest of each column, NULLs where these are not known. ``None``: too many to tell.
    """

    keys: pa.RecordBatch | None
    exact: bool = True


@dataclass(frozen=True)
class Warned:
    """Something has failed, in one sentence behind its code, and the job goes on."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Recovered:
    """What an operator warned of is over."""

    sentence: str


News = JoinKeys | Warned | Recovered


@dataclass(frozen=True)
class KeysKnown:
    """All that the loaded side of a join has, for what filters the rows of the other side."""

    join_id: str
    told: JoinKeys
