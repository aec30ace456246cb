"""What a plan means, as hashes: of its rows and of each of its columns. Names for people, unread columns
and the order of traversal play no part.
"""

from __future__ import annotations

from penstock.catalog.connectors.registry import is_secret
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.interval_join import TimedJoin
from penstock.planner.logical.join import Join, JoinKind
from penstock.planner.logical.late_rows import LateMark
from penstock.planner.logical.lookup_join import LookupJoin
from penstock.planner.logical.match_recognize import MatchFact, MatchRecognize, RowsAggregate, RowValue, Value
from penstock.planner.logical.node_text import emission_text
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import (
    BoundedInput,
    Exchange,
    Filter,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Sink,
    Sort,
    StatementSet,
    TopN,
    Union,
    Values,
    WatermarkAssign,
    WindowTable,
)
from penstock.planner.logical.processing_time import ProcessingTime
from penstock.planner.logical.replicate_rows import Repeat
from penstock.planner.logical.snapshot_join import SnapshotJoin
from penstock.planner.logical.temporal_join import TemporalJoin
from penstock.planner.logical.temporal_sort import TemporalSort
from penstock.planner.logical.unnest import Unnest
from penstock.planner.physical.expression_digest import EXACT, ExactTexts, digest

# Options that say how fast, how often or in what pieces, never which rows.
_IMMATERIAL_OPTIONS = frozenset(
    {
        "source.monitor-interval",
        "scan.reload.interval",
        "source.missing-columns",  # without it such a file is not read at all
        "source.rows-per-second",
        "rows-per-second",
        "print-identifier",
        "sink.rolling.rows",
        "sink.rolling.bytes",
        "sink.parquet.compression",
    }
)
_ID_LENGTH = 16


@dataclass(frozen=True)
class Meaning:
    """Hashes of the rows (as a bag, whatever columns are kept of them) and of each column."""

    rows: str
    columns: tuple[str, ...]

    def identity(self, *more: str) -> str:
        """Return the operator id of a node with this meaning: the hash of its rows, its columns and what
        else distinguishes it.
        """
        return digest("operator", self.rows, *self.columns, *more)[:_ID_LENGTH]


class Meanings:
    """Meanings of the nodes of one plan, each derived once; ``texts`` says what expressions mean."""

    def __init__(self, texts: ExactTexts = EXACT) -> None:
        self._texts = texts
        self._known: dict[int, tuple[LogicalPlan, Meaning]] = {}

    def of(self, node: LogicalPlan) -> Meaning:
        """Return the meaning of a node."""
        if id(node) not in self._known:
            self._known[id(node)] = (node, self._derive(node))
        return self._known[id(node)][1]

    def _derive(self, node: LogicalPlan) -> Meaning:
        match node:
            case Scan():
                return _of_scan(node, self._texts)
            case Values(rows=rows):
                text = digest(
                    "values",
                    *(self._texts.expression(cell, ()) for row in rows for cell in row),
                    str(len(rows)),
                )
                return Meaning(text, tuple(digest(text, str(i)) for i in range(len(node.schema))))
            case BoundedInput(plan=plan):
                below = self.of(plan)
                return Meaning(digest("bounded", below.rows), below.columns)
            case Aggregate() | WindowAggregate():
                return self._of_aggregate(node)
            case Join():
                return self._of_join(node)
            case TemporalJoin():
                return _of_temporal_join(node, self.of(node.left), self.of(node.right), self._texts)
            case LookupJoin():
                return _of_lookup_join(node, self.of(node.left), self._texts)
            case Union(branches=branches):
                inputs = [self.of(branch) for branch in branches]
                bag = digest(
                    "union", *(part for i in inputs for part in (i.rows, *self._texts.ties(i.columns)))
                )
                return Meaning(
                    bag,
                    tuple(
                        digest("column", bag, *self._texts.place(i, [one.columns for one in inputs]))
                        for i in range(len(node.schema))
                    ),
                )
            case StatementSet(sinks=sinks):
                return Meaning(digest("set", *(self.of(sink).rows for sink in sinks)), ())
        return self._of_unary(node, self.of(node.inputs[0]))

    def _of_unary(self, node: LogicalPlan, below: Meaning) -> Meaning:
        columns = below.columns
        match node:
            case Filter(predicate=predicate):
                return Meaning(
                    digest("filter", below.rows, self._texts.expression(predicate, columns)), columns
                )
            case Project(expressions=expressions):
                return Meaning(below.rows, tuple(self._texts.column(e, columns) for e in expressions))
            case WatermarkAssign(time_column=time, watermark=watermark):
                return Meaning(
                    digest(
                        "watermark", below.rows, columns[time], self._texts.expression(watermark, columns)
                    ),
                    columns,
                )
            case ProcessingTime(time_column=time):
                rows = digest("processing time", below.rows, columns[time])
                return Meaning(rows, (*columns[:time], digest("stamp", rows), *columns[time + 1 :]))
            case LateMark(window=window, lateness_us=lateness_us):
                mark = digest("late", below.rows, self._texts.window(window, columns), str(lateness_us))
                return Meaning(below.rows, columns + tuple(digest(mark, str(i)) for i in range(3)))
            case WindowTable(window=window):
                rows = digest("windows", below.rows, self._texts.window(window, columns))
                return Meaning(rows, columns + tuple(digest("window", rows, str(i)) for i in range(3)))
            case Sort():
                return below
            case TopN(keys=keys, limit=limit, offset=offset):
                order = (self._texts.sort(key, columns) for key in keys)
                return Meaning(
                    digest("top", below.rows, str(limit), str(offset), *order, *self._texts.ties(columns)),
                    columns,
                )
            case Over():
                return _of_over(node, below, self._texts)
            case PartitionTop():
                return _of_partition_top(node, below, self._texts)
            case Unnest():
                return _of_unnest(node, below, self._texts)
            case MatchRecognize():
                return _of_matches(node, below, self._texts)
            case Repeat():
                return Meaning(digest("repeat", below.rows, columns[-1]), columns[:-1])
            case TemporalSort(keys=keys):
                order = (self._texts.sort(key, columns) for key in keys)
                return Meaning(
                    digest("temporal sort", below.rows, *order, *self._texts.ties(columns)), columns
                )
            case Emit(kind=kind, emission=emission):
                return Meaning(digest("emit", below.rows, kind.value, str(emission)), columns)
            case Limit(limit=limit, offset=offset):
                return Meaning(digest("limit", below.rows, str(limit), str(offset)), columns)
            case Sink(table=table):
                return Meaning(
                    digest("sink", below.rows, *columns, "" if table is None else table_text(table)), columns
                )
            case Exchange():
                return below
        raise AssertionError(type(node))

    def _of_aggregate(self, node: Aggregate | WindowAggregate) -> Meaning:
        below = self.of(node.input)
        keys = tuple(below.columns[key] for key in node.keys)
        window = (
            self._texts.window(node.window, below.columns) + emission_text(node.emission)
            if isinstance(node, WindowAggregate)
            else ""
        )
        rows = digest("groups", below.rows, window, node.phase.value, *keys)
        calls = tuple(
            digest("aggregate", rows, self._texts.call(call, below.columns)) for call in node.aggregates
        )
        added = len(node.schema) - len(keys) - len(calls)
        return Meaning(rows, keys + calls + tuple(digest("window", rows, str(i)) for i in range(added)))

    def _of_join(self, node: Join) -> Meaning:
        left, right = self.of(node.left), self.of(node.right)
        keys = [
            part
            for a, b in zip(node.left_keys, node.right_keys, strict=True)
            for part in (left.columns[a], right.columns[b])
        ]
        sides = tuple(digest("left", c) for c in left.columns) + tuple(
            digest("right", c) for c in right.columns
        )
        residual = "" if node.residual is None else self._texts.expression(node.residual, sides)
        times = ""
        if isinstance(node, TimedJoin):
            sides_time = zip(node.time.sides, (left, right), strict=True)
            times = digest("timed", *(below.columns[side.time_column] for side, below in sides_time))
        if isinstance(node, SnapshotJoin):
            times = digest("snapshot", right.columns[node.build_time], str(node.loaded_us), str(node.idle_ms))
        rows = digest("join", node.kind.value, left.rows, right.rows, residual, times, *keys)
        columns = tuple(digest("left", rows, c) for c in left.columns)
        if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            columns += tuple(digest("right", rows, c) for c in right.columns)
        return Meaning(rows, columns)


def _of_lookup_join(node: LookupJoin, left: Meaning, texts: ExactTexts) -> Meaning:
    right = _of_scan(node.scan, texts)
    keys = (
        f"{left.columns[a]}={right.columns[b]}" for a, b in zip(node.left_keys, node.right_keys, strict=True)
    )
    residual = "" if node.residual is None else texts.expression(node.residual, left.columns + right.columns)
    rows = digest("lookup", node.kind.value, left.rows, right.rows, *keys, residual)
    return Meaning(
        rows,
        tuple(digest("left", rows, c) for c in left.columns)
        + tuple(digest("found", rows, c) for c in right.columns),
    )


def _of_temporal_join(node: TemporalJoin, left: Meaning, right: Meaning, texts: ExactTexts) -> Meaning:
    keys = [
        part
        for a, b in zip(node.left_keys, node.right_keys, strict=True)
        for part in (left.columns[a], right.columns[b])
    ]
    sides = tuple(digest("left", c) for c in left.columns) + tuple(digest("right", c) for c in right.columns)
    residual = "" if node.residual is None else texts.expression(node.residual, sides)
    times = (left.columns[node.left_time], right.columns[node.right_time])
    ties = texts.ties(tuple(right.columns[i] for i in node.ties))
    rows = digest(
        "temporal join", node.kind.value, left.rows, right.rows, residual, *times, *keys, "ties", *ties
    )
    columns = tuple(digest("left", rows, c) for c in left.columns) + tuple(
        digest("right", rows, c) for c in right.columns
    )
    return Meaning(rows, columns)


def _of_over(node: Over, below: Meaning, texts: ExactTexts) -> Meaning:
    """What breaks ties takes part: all columns where the answer depends on them."""
    columns = below.columns
    order = (texts.sort(key, columns) for key in node.order)
    ties = texts.ties(columns) if node.breaks_ties else ()
    within = digest(
        "within",
        str(node.timely),
        str(node.frame),
        *(columns[key] for key in node.partition),
        "by",
        *order,
        "ties",
        *ties,
    )
    rows = digest("over in time", below.rows, columns[node.time_column]) if node.timely else below.rows
    return Meaning(
        rows, columns + tuple(digest("over", rows, within, texts.call(call, columns)) for call in node.calls)
    )


def _of_unnest(node: Unnest, below: Meaning, texts: ExactTexts) -> Meaning:
    args = (texts.expression(arg, below.columns) for arg in node.call.args)
    rows = digest(
        "unnest",
        below.rows,
        node.call.function,
        "" if node.call.body is None else node.call.body.version,
        str(node.outer),
        *args,
    )
    if node.condition is not None:
        given_all = tuple(digest("given", rows, str(i)) for i in range(len(node.call.columns)))
        rows = digest(
            "unnest on",
            rows,
            texts.expression(node.condition, (*below.columns, *given_all, digest("nth", rows))),
        )
    given = tuple(digest("given", rows, str(i)) for i in node.gives) + (
        (digest("nth", rows),) if node.ordinality else ()
    )
    return Meaning(rows, tuple(below.columns[i] for i in node.keep) + given)


def _of_partition_top(node: PartitionTop, below: Meaning, texts: ExactTexts) -> Meaning:
    columns = below.columns
    order = (texts.sort(key, columns) for key in node.order)
    ties = texts.ties(columns) if node.rank == "row_number" else ()
    head = ("partition top", below.rows, node.rank, str(node.limit), str(node.window is not None))
    rows = digest(*head, *(columns[key] for key in node.partition), "by", *order, "ties", *ties)
    return Meaning(rows, columns if node.rank_name is None else (*columns, digest("rank", rows)))


def _of_matches(node: MatchRecognize, below: Meaning, texts: ExactTexts) -> Meaning:
    """What breaks ties takes part: all columns. So do the names of variables, which CLASSIFIER tells."""
    columns = below.columns
    definitions = (
        digest(str(d.variable), texts.expression(d.condition, _value_texts(d.values, columns, texts)))
        for d in node.definitions
    )
    order = (texts.sort(key, columns) for key in node.order)
    how = (str(node.skip), *(str(number) for number in sorted(node.skip_rows)), str(node.within_us))
    partition = (columns[key] for key in node.partition)
    rows = digest(
        "matches",
        below.rows,
        str(node.pattern),
        *definitions,
        "how",
        *how,
        "per",
        *partition,
        "by",
        *order,
        "ties",
        *texts.ties(columns),
    )
    rows = digest("all rows", rows) if node.all_rows else rows
    kept = range(len(columns)) if node.all_rows else node.partition
    values = _value_texts(node.values, columns, texts)
    measures = (digest("measure", rows, texts.expression(measure, values)) for measure in node.measures)
    return Meaning(rows, (*(digest("matched", rows, columns[i]) for i in kept), *measures))


def _value_texts(values: tuple[Value, ...], columns: tuple[str, ...], words: ExactTexts) -> tuple[str, ...]:
    """Return what identifies each value of a match."""
    texts = []
    for value in values:
        final = str(value.final)
        match value:
            case RowValue():
                place = (
                    *(str(number) for number in sorted(value.rows)),
                    str(value.first),
                    str(value.offset),
                    str(value.before),
                )
                texts.append(digest("row", final, words.expression(value.expression, columns), *place))
            case RowsAggregate():
                rows = (str(number) for number in sorted(value.rows))
                texts.append(digest("rows", final, words.call(value.call, columns), *rows))
            case MatchFact():
                texts.append(digest("fact", final, value.fact.value))
    return tuple(texts)


def _of_scan(node: Scan, texts: ExactTexts) -> Meaning:
    table = table_text(node.table)
    source = node.table.source_schema
    # not which fields of a row are read: one more changes nothing of the others
    declared = {field.name: field.type for field in node.table.schema}
    columns = tuple(
        digest(
            "column", table, source[i].name.lower(), texts.kind(declared.get(source[i].name, source[i].type))
        )
        for i in node.columns
    )
    predicate = "" if node.predicate is None else texts.expression(node.predicate, columns)
    return Meaning(digest("scan", table, predicate), columns)


def table_text(table: CatalogTable) -> str:
    """Return what identifies a table: its name and the options that say where its rows are and how they
    are read.
    """
    told = {
        key: text
        for key, text in table.options.items()
        if key not in _IMMATERIAL_OPTIONS and not key.startswith("lookup.")
    }
    options = (f"{key}={told[key]}" for key in sorted(told) if not is_secret(table.connector, key))
    return digest("table", table.name.lower(), *options)
