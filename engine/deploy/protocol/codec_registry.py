"""The closed list of classes that the job codec encodes: frozen dataclasses and enums of the catalog, the
planner and the engine.

Plan nodes are not listed: the factory's table registers the modules of all nodes that have an operator.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import penstock.catalog.errors
import penstock.catalog.python_functions
import penstock.catalog.schema
import penstock.catalog.tables
import penstock.catalog.types
import penstock.engine.api.cluster_options
import penstock.engine.api.operator
import penstock.engine.api.restart_strategy
import penstock.engine.checkpoint.async_writer
import penstock.engine.checkpoint.manifest
import penstock.engine.checkpoint.snapshot_format
import penstock.engine.deploy.protocol.error_codec
import penstock.engine.deploy.protocol.messages
import penstock.engine.deploy.worker.registration
import penstock.engine.metrics.operator_metrics
import penstock.engine.metrics.task_metrics
import penstock.engine.task.messages
import penstock.planner.expressions.nodes
import penstock.planner.expressions.python_calls
import penstock.planner.expressions.row_pattern
import penstock.planner.logical.condition_program
import penstock.planner.logical.distribution
import penstock.planner.logical.exchange
import penstock.planner.logical.operator_facts
import penstock.planner.logical.pattern_nfa
import penstock.planner.logical.projection
import penstock.planner.logical.windows
import penstock.planner.physical.state_compatibility
from penstock.catalog.python_functions import PythonFunction
from penstock.catalog.tables import ObjectPath
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.bad_records import RejectedRecord
from penstock.engine.metrics.busy_time import TimeShares
from penstock.engine.metrics.operator_metrics import SplitProgress, SplitReads
from penstock.engine.network.admission import Refusals
from penstock.engine.operators.factory import OPERATOR_CLASSES

_MODULES: tuple[ModuleType, ...] = (
    penstock.catalog.errors,
    penstock.catalog.schema,
    penstock.catalog.tables,
    penstock.catalog.types,
    penstock.engine.checkpoint.async_writer,
    penstock.engine.deploy.protocol.messages,
    penstock.engine.api.cluster_options,
    penstock.engine.deploy.protocol.error_codec,
    penstock.engine.deploy.worker.registration,
    penstock.engine.task.messages,
    penstock.engine.metrics.operator_metrics,
    penstock.engine.checkpoint.manifest,
    penstock.engine.api.operator,
    penstock.engine.api.restart_strategy,
    penstock.engine.checkpoint.snapshot_format,
    penstock.engine.metrics.task_metrics,
    penstock.planner.logical.distribution,
    penstock.planner.expressions.nodes,
    penstock.planner.logical.projection,
    penstock.planner.logical.exchange,
    penstock.planner.expressions.python_calls,
    penstock.planner.logical.pattern_nfa,
    penstock.planner.expressions.row_pattern,
    penstock.planner.logical.condition_program,
    penstock.planner.physical.state_compatibility,
    penstock.planner.logical.operator_facts,
    penstock.planner.logical.windows,
)
# single classes, whose modules are not registered as a whole
_SINGLE: tuple[type, ...] = (
    ObjectPath,
    ObjectUrl,
    JobOptions,
    RejectedRecord,
    Batch,
    Refusals,
    SplitProgress,
    SplitReads,
    TimeShares,
)


@cache
def registered_classes() -> dict[str, type[Any]]:
    """Return the classes by their encoded names."""
    modules = {module.__name__: module for module in _MODULES}
    # plan nodes: the modules of all nodes that the operator factory knows
    modules |= {node.__module__: sys.modules[node.__module__] for node in OPERATOR_CLASSES}
    declared = [
        value
        for module in modules.values()
        for value in vars(module).values()
        # classes a module only imports belong to the module that defines them
        if inspect.isclass(value) and value.__module__ in modules and _is_value(value)
    ]
    by_name: dict[str, type[Any]] = {}
    for value in (*_SINGLE, *declared):
        # the encoded name carries no module: it must be unique
        if by_name.setdefault(name_of(value), value) is not value:
            raise AssertionError(f"two classes are written as {name_of(value)}")
    return by_name


def name_of(made: type[Any]) -> str:
    """Return the name a class is encoded with: its own, which is unique among the registered classes."""
    return made.__name__


def fields_of(made: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields that a class's constructor takes."""
    return _fields(name_of(made))


@cache
def _fields(name: str) -> tuple[str, ...]:
    made = registered_classes()[name]
    # a named tuple has no dataclass fields
    if issubclass(made, tuple):
        return made._fields  # type: ignore[attr-defined]  # a named tuple
    return tuple(field.name for field in dataclasses.fields(made) if field.init)


def _is_value(made: type[Any]) -> bool:
    """Return whether objects of a class are plain values: members of an enum, or frozen fields."""
    # an enum, a class that is listed by itself, or a frozen dataclass
    if issubclass(made, Enum):
        return True
    if made in _SINGLE:
        return True
    return (
        dataclasses.is_dataclass(made)
        and vars(made)["__dataclass_params__"].frozen
        and not issubclass(made, PythonFunction)
    )
