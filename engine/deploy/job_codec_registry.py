"""The closed list of what may stand in an encoded job or message: frozen dataclasses and enums, of the catalog, the planner and the job's life."""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import penstock.catalog.errors
import penstock.catalog.python_functions
import penstock.catalog.schema
import penstock.catalog.tables
import penstock.catalog.types
import penstock.engine.checkpoint_io
import penstock.engine.cluster_options
import penstock.engine.deploy.control_messages
import penstock.engine.deploy.sent_error
import penstock.engine.deploy.worker_facts
import penstock.engine.job_messages
import penstock.engine.latency_histogram
import penstock.engine.manifest
import penstock.engine.operator_news
import penstock.engine.restart
import penstock.engine.snapshots
import penstock.engine.task_figures
import penstock.planner.edges
import penstock.planner.emission
import penstock.planner.emit
import penstock.planner.expressions
import penstock.planner.history_scan
import penstock.planner.lambdas
import penstock.planner.late_rows
import penstock.planner.logical
import penstock.planner.match_recognize
import penstock.planner.over
import penstock.planner.physical
import penstock.planner.processing_time
import penstock.planner.python_aggregates
import penstock.planner.python_calls
import penstock.planner.repeat
import penstock.planner.row_automaton
import penstock.planner.row_pattern
import penstock.planner.row_program
import penstock.planner.runtime_filter
import penstock.planner.snapshot_join
import penstock.planner.state_meaning
import penstock.planner.temporal_join
import penstock.planner.temporal_sort
import penstock.planner.timed_join
import penstock.planner.unnest
import penstock.planner.windowing
from penstock.catalog.databases import Place
from penstock.catalog.python_functions import PythonFunction
from penstock.engine.connectors.bad_record_store import RejectedRecord
from penstock.engine.elements import Batch
from penstock.engine.job_options import JobOptions
from penstock.engine.metrics import SplitProgress
from penstock.engine.network.admission import Refusals
from penstock.engine.time_spent import TimeShares

_MODULES: tuple[ModuleType, ...] = (
    penstock.catalog.errors,
    penstock.catalog.schema,
    penstock.catalog.tables,
    penstock.catalog.types,
    penstock.engine.checkpoint_io,
    penstock.engine.deploy.control_messages,
    penstock.engine.cluster_options,
    penstock.engine.deploy.sent_error,
    penstock.engine.deploy.worker_facts,
    penstock.engine.job_messages,
    penstock.engine.latency_histogram,
    penstock.engine.manifest,
    penstock.engine.operator_news,
    penstock.engine.restart,
    penstock.engine.snapshots,
    penstock.engine.task_figures,
    penstock.planner.edges,
    penstock.planner.emission,
    penstock.planner.emit,
    penstock.planner.expressions,
    penstock.planner.lambdas,
    penstock.planner.history_scan,
    penstock.planner.late_rows,
    penstock.planner.logical,
    penstock.planner.match_recognize,
    penstock.planner.over,
    penstock.planner.physical,
    penstock.planner.processing_time,
    penstock.planner.python_aggregates,
    penstock.planner.python_calls,
    penstock.planner.repeat,
    penstock.planner.row_automaton,
    penstock.planner.row_pattern,
    penstock.planner.row_program,
    penstock.planner.runtime_filter,
    penstock.planner.snapshot_join,
    penstock.planner.state_meaning,
    penstock.planner.temporal_join,
    penstock.planner.temporal_sort,
    penstock.planner.timed_join,
    penstock.planner.unnest,
    penstock.planner.windowing,
)
_SINGLE: tuple[type, ...] = (
    Place,
    JobOptions,
    RejectedRecord,
    Batch,
    Refusals,
    SplitProgress,
    TimeShares,
)


@cache
def registered_classes() -> dict[str, type[Any]]:
    """Return the classes by the name they are written with."""
    found: dict[str, type[Any]] = {}
    for made in (*_SINGLE, *(made for module in _MODULES for made in vars(module).values())):
        if not inspect.isclass(made) or not _is_value(made):
            continue
        if made.__module__ not in {module.__name__ for module in _MODULES} and made not in _SINGLE:
            continue
        found[name_of(made)] = made
    return found


def name_of(made: type[Any]) -> str:
    """Return the name a class is written with."""
    return f"{made.__module__}.{made.__name__}"


def fields_of(made: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields that are given to a class's constructor."""
    return _fields(name_of(made))


@cache
def _fields(name: str) -> tuple[str, ...]:
    made = registered_classes()[name]
    if issubclass(made, tuple):
        return made._fields  # type: ignore[attr-defined]  # a named tuple
    return tuple(field.name for field in dataclasses.fields(made) if field.init)


def _is_value(made: type[Any]) -> bool:
    """Return whether objects of a class are plain values: members of an enum, or frozen fields."""
    if issubclass(made, Enum):
        return True
    if made in _SINGLE:
        return True
    return dataclasses.is_dataclass(made) and vars(made)["__dataclass_params__"].frozen and not issubclass(made, PythonFunction)
