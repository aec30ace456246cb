"""Arming failpoints of a whole process through its environment, for tests that observe it from outside.

``PENSTOCK_FAILPOINTS="C8=kill@3;S4=raise(p=0.1,seed=7);W7=delay(2 s)"``, honoured with ``PENSTOCK_TEST=1``
only.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import parse_duration_ms
from penstock.engine.api.failpoints import POINTS, arm, check_point

VARIABLE = "PENSTOCK_FAILPOINTS"
_ENABLED = "PENSTOCK_TEST"
_MARKS = "PENSTOCK_FAILPOINT_MARKS"
# NAME=ACTION, options in parentheses, @HIT: ``S4=raise(p=0.1,seed=7)@3``.
_ENTRY = re.compile(r"\s*(\w+)\s*=\s*(kill|raise|delay)\s*(?:\(([^)]*)\))?\s*(?:@\s*(\d+))?\s*")


@dataclass
class ArmedPoint:
    """The action at one point: at its ``at``-th hit only (0: at every hit), with a probability, and at most
    ``times`` times.

    ``marks``: a directory in which each action leaves a file, so that ``times`` counts over all processes of
    a test.
    """

    does: str
    at: int = 0
    probability: float = 1.0
    delay_s: float = 0.0
    times: int = 1_000_000
    marks: Path | None = None
    random: Random = field(default_factory=lambda: Random(0))
    hits: int = 0

    def __call__(self, name: str) -> None:
        """Kill this process, raise OSError, or wait."""
        self.hits += 1
        # a seeded generator per point: the same seed fails at the same hits
        drawn = self.probability >= 1.0 or self.random.random() < self.probability
        if not drawn or (self.at and self.hits != self.at) or not self._claim(name):
            return
        # unbuffered, since SIGKILL would lose a buffered line
        os.write(2, f"failpoint {name} ({POINTS[name]}): {self.does} at hit {self.hits}\n".encode())
        if self.does == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "raise":
            raise OSError(errno.EIO, f"failpoint {name}: {POINTS[name]}")
        time.sleep(self.delay_s)

    def _claim(self, name: str) -> bool:
        """Return whether this hit is one of ``times``; each is claimed by one process."""
        if self.marks is None:
            # Without a directory this process alone counts.
            self.times -= 1
            return self.times >= 0
        # creating a file exclusively is atomic: of several processes one gets each number
        for number in range(self.times):
            try:
                os.close(
                    os.open(
                        self.marks / f"{name}-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                    )
                )
            except FileExistsError:
                continue
            return True
        return False


def arm_from_environment(environment: Mapping[str, str] | None = None) -> str | None:
    """Arm the failpoints that the environment lists; return a warning, or ``None`` when it lists none.
    CLI-6150 for invalid text.
    """
    variables = os.environ if environment is None else environment
    text = variables.get(VARIABLE)
    if not text:
        return None
    # Set by accident it must not fail a user's job.
    if variables.get(_ENABLED) != "1":
        return f"{VARIABLE} is set and ignored: failpoints work with {_ENABLED}=1 only"
    marks = Path(variables[_MARKS]) if variables.get(_MARKS) else None
    points = parse_points(text, marks)
    arm(points)
    return f"failpoints are armed in this process, it will fail on purpose: {', '.join(points)}"


def parse_points(text: str, marks: Path | None = None) -> dict[str, ArmedPoint]:
    """Return the action of each point; raises CLI-6150 for an unknown point or action."""
    points = {}
    # Empty entries are allowed: a trailing semicolon.
    for entry in filter(str.strip, text.split(";")):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            hint = "write C8=kill@3, S4=raise(p=0.1,seed=7) or W7=delay(2 s), separated by semicolons"
            raise PenstockError("CLI-6150", f"{entry.strip()[:80]!r} arms no failpoint", hint=hint)
        name, does, words, at = match.groups()
        points[check_point(name)] = _point(entry.strip(), does, words or "", int(at or 0), marks)
    return points


def _point(entry: str, does: str, words: str, at: int, marks: Path | None) -> ArmedPoint:
    point = ArmedPoint(does, at=at, marks=marks)
    for word in filter(None, (word.strip() for word in words.split(","))):
        key, _, value = (part.strip() for part in word.partition("="))
        # The only option without a key is a delay.
        delay_ms = parse_duration_ms(word) if does == "delay" else None
        try:
            if delay_ms is not None:
                point.delay_s = delay_ms / 1e3
            elif key == "p":
                point.probability = float(value)
            elif key == "seed":
                point.random = Random(int(value))
            elif key == "times":
                point.times = int(value)
            else:
                raise ValueError(word)
        except ValueError as cause:
            raise PenstockError(
                "CLI-6150",
                f"{word[:40]!r} means nothing in {entry[:80]!r}",
                hint="p, seed, times, or a delay such as 2 s",
            ) from cause
    return point


def warn_of_failpoints() -> None:
    """Arm the failpoints that the environment lists, and report them on stderr in one line."""
    warning = arm_from_environment()
    if warning is not None:
        sys.stderr.write(f"warning: {warning}\n")
