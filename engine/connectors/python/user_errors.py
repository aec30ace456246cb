"""Exceptions of a user's source or sink as errors that name the line of the program."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.python_functions import PROGRAM_ERRORS

# frames of files below it are ours
_ENGINE = Path(__file__).resolve().parents[2]


@contextmanager
def users_own(what: str) -> Iterator[None]:
    """Run the user's code; its exceptions become DAT-5602. Those of the system and of connections may pass,
    so that the job restarts.
    """
    try:
        yield
    except PenstockError:
        raise
    except PROGRAM_ERRORS as error:
        raise _user_error(what, error) from error


def _user_error(what: str, error: BaseException) -> PenstockError:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not Path(frame.filename).is_relative_to(_ENGINE)
    ]
    # the first one is the user's; those above it may be of libraries
    at = f" (line {frames[0].lineno} of {Path(frames[0].filename).name})" if frames else ""
    reason = str(error).strip().split("\n")[0][:200]
    may_pass = isinstance(error, OSError)
    return PenstockError(
        "DAT-5602",
        f"{what} failed with {type(error).__name__}{f': {reason}' if reason else ''}{at}",
        detail=None
        if len(frames) < 2
        else f"raised at {Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name}",
        hint="correct the Python code, or catch the exception in it",
        kind=Kind.EXTERNAL if may_pass else Kind.USER,
        retriable=may_pass,
        sqlstate="38000",
    )
