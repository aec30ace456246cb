"""The closed list of what may stand in an encoded job or message: frozen dataclasses and enums, of the catalog, the planner and the job's life."""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import catalog.errors
import catalog.python_functions
import catalog.schema
import catalog.tables
import catalog.types
import engine.checkpoint_io
import engine.cluster_options
import engine.deploy.control_messages
import engine.deploy.sent_error
import engine.deploy.worker_facts
import engine.job_messages
import engine.latency_histogram
import engine.manifest
import engine.operator_news
import engine.restart
import engine.snapshots
import engine.task_figures
import planner.edges
import planner.emission
import planner.emit
import planner.expressions
import planner.history_scan
import planner.lambdas
import planner.late_rows
import planner.logical
import planner.match_recognize
import planner.over
import planner.physical
import planner.processing_time
import planner.python_aggregates
import planner.python_calls
import planner.repeat
import planner.row_automaton
import planner.row_pattern
import planner.row_program
import planner.runtime_filter
import planner.snapshot_join
import planner.state_meaning
import planner.temporal_join
import planner.temporal_sort
import planner.timed_join
import planner.unnest
import planner.windowing
from catalog.databases import Place
from catalog.python_functions import PythonFunction
from engine.connectors.bad_record_store import RejectedRecord
from engine.elements import Batch
from engine.job_options import JobOptions
from engine.metrics import SplitProgress
from engine.network.admission import Refusals
from engine.time_spent import TimeShares

_MODULES: tuple[ModuleType, ...] = (
    catalog.errors,
    catalog.schema,
    catalog.tables,
    catalog.types,
    engine.checkpoint_io,
    engine.deploy.control_messages,
    engine.cluster_options,
    engine.deploy.sent_error,
    engine.deploy.worker_facts,
    engine.job_messages,
    engine.latency_histogram,
    engine.manifest,
    engine.operator_news,
    engine.restart,
    engine.snapshots,
    engine.task_figures,
    planner.edges,
    planner.emission,
    planner.emit,
    planner.expressions,
    planner.lambdas,
    planner.history_scan,
    planner.late_rows,
    planner.logical,
    planner.match_recognize,
    planner.over,
    planner.physical,
    planner.processing_time,
    planner.python_aggregates,
    planner.python_calls,
    planner.repeat,
    planner.row_automaton,
    planner.row_pattern,
    planner.row_program,
    planner.runtime_filter,
    planner.snapshot_join,
    planner.state_meaning,
    planner.temporal_join,
    planner.temporal_sort,
    planner.timed_join,
    planner.unnest,
    planner.windowing,
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
