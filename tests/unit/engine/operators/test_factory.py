"""The table of operators: each spec has an entry, and each class it names is there and takes that spec."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from penstock.engine.api.operator import Operator
from penstock.engine.operators import factory
from penstock.planner.physical.operator_specs import OperatorSpec


def specs(kind: type[OperatorSpec] = OperatorSpec) -> Iterator[type[OperatorSpec]]:
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("penstock.planner."):  # not those of other tests
            yield sub
        yield from specs(sub)


def test_every_spec_has_an_entry() -> None:
    assert set(specs()) == set(factory._OPERATOR_CLASSES)


def test_every_class_is_there() -> None:
    """Those of choices too: all strings of the file that name a class."""
    tree = ast.parse(Path(factory.__file__).read_text(encoding="utf-8"))
    names = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and str(node.value).startswith("penstock.")
        and ":" in str(node.value)
    }
    assert len(names) > len(factory._OPERATOR_CLASSES)
    for name in names:
        module, _, class_name = name.partition(":")
        made = getattr(import_module(module), class_name)
        assert issubclass(made, Operator), name
        parameters = list(inspect.signature(made).parameters)
        extra = ["build"] if class_name == "HistorySourceOperator" else []
        assert parameters == ["spec", "options", *extra], name
