"""Every operator against its naive reference, by machines of random rules; ``MACHINES=20`` tries twenty times
as many examples.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.engine.state import mapped_arrays
from penstock.engine.storage import spill_files
from penstock.engine.storage.spill_files import SpillFiles
from tests.harness.length import of_length
from tests.state_machines.harness import Given, OperatorMachine, Rows, Subject
from tests.state_machines.subjects import SUBJECTS

EXAMPLES, STEPS = of_length(2, 5), 14
_TIMES = int(os.environ.get("MACHINES", "1"))


def machine(name: str, subject: Subject) -> type[OperatorMachine]:
    return type(name.title().replace(" ", ""), (OperatorMachine,), {"subject": subject, "operators": set()})


def tried(kind: type[OperatorMachine], examples: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    options = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=_TIMES == 1,
        suppress_health_check=checks,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(kind, settings=options)


@pytest.mark.longer
@pytest.mark.parametrize("name", list(SUBJECTS))
def test_operator_is_its_reference(name: str) -> None:
    kind = machine(name, SUBJECTS[name])
    tried(kind, EXAMPLES * _TIMES)
    assert not SUBJECTS[name].has or SUBJECTS[name].has in kind.operators, kind.operators


ON_DISK = [
    "join full",
    "group aggregate",
    "distinct",
    "hop",
    "session",
    "over in time",
    "last row of keys",
    "first row of keys",
    "join as of left",
]


@pytest.mark.longer
@pytest.mark.parametrize("name", ON_DISK)
def test_state_on_disk_is_state_in_memory(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever can go to disk goes there after every step."""
    monkeypatch.setattr(mapped_arrays, "LEAST_BYTES", 1)
    made: list[int] = []
    monkeypatch.setattr(
        spill_files,
        "_mapped",
        lambda size, folder, first, make=spill_files._mapped: made.append(size) or make(size, folder, first),
    )
    kind = type("OnDisk", (machine(name, SUBJECTS[name]),), {"files": SpillFiles(tmp_path)})
    tried(kind, of_length(2, 3) * _TIMES)
    assert made and not list(tmp_path.iterdir())


def test_a_wrong_operator_is_seen() -> None:
    """The machine of a reference that forgets a key finds it out."""
    subject = SUBJECTS["group aggregate"]

    def forgetful(given: Given) -> Rows:
        return Counter({row: n for row, n in subject.reference(given).items() if row[0] != 3})

    with pytest.raises(AssertionError):
        tried(machine("wrong", Subject(subject.query, forgetful)), 40, (Phase.generate,))
