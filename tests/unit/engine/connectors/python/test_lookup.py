"""Which Python object a table names: the program's, else one of a module that is allowed."""

from __future__ import annotations

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import ProgramConnectors
from penstock.catalog.types import BIGINT
from penstock.engine.connectors.python.lookup import PythonConnectors, user_options
from penstock.engine.deploy.worker.python_modules import import_by_name
from tests.harness.reading import table_of

HERE = __name__


@penstock.source
def empty(split: str, position: object) -> list[object]:
    return []


@penstock.sink
class Hole:
    def last_committed(self, writer: str) -> int:
        return 0

    def commit(self, writer: str, epoch: int, batches: object) -> None:
        """Forget."""


def named(name: str, *modules: str, program: ProgramConnectors | None = None) -> object:
    table = table_of({"n": BIGINT}, {"connector": "python", "name": name})
    return PythonConnectors(program or ProgramConnectors(), lambda: modules, import_by_name).source(table)


def test_a_module_that_is_allowed_and_the_program() -> None:
    assert named(f"{HERE}.empty", HERE) is empty
    assert named(f"{HERE}.empty", HERE.rpartition(".")[0]) is empty
    program = ProgramConnectors()
    program.register(empty, "Mine")
    assert named("mine", program=program) is empty


@pytest.mark.parametrize(
    ("name", "modules", "said"),
    [
        ("emty", (), "there is no Python source 'emty'"),
        (f"{HERE}.empty", ("tests.uni",), "is not among those that may be imported"),
        ("os.system", (), "module os is not among those that may be imported"),
        ("os.system", ("os",), "module os has no Python source system"),
        ("no_such_module.x", ("no_such_module",), "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}.Hole", (HERE,), "is a Python sink, not a source"),
    ],
)
def test_what_is_refused(name: str, modules: tuple[str, ...], said: str) -> None:
    with pytest.raises(PenstockError, match="DAT-5601") as refused:
        named(name, *modules)
    assert said in refused.value.message and refused.value.hint


def test_options_for_the_code() -> None:
    table = table_of(
        {"n": BIGINT}, {"connector": "python", "name": "x", "option.url": "u", "scan.bounded": "true"}
    )
    assert user_options(table) == {"url": "u"}
