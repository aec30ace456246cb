"""Prints a result: which rows (final, as they come, or changes) and by which writer."""

from __future__ import annotations

import io
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TextIO

import pyarrow as pa

from penstock.catalog.errors import out_of_memory
from penstock.catalog.settings import Settings
from penstock.client.results.result import Result
from penstock.engine.api.slow_steps import SLOW_STEPS
from penstock.repl.output.last_rows import LastRows
from penstock.repl.output.messages import Messages
from penstock.repl.output.pager import Pager
from penstock.repl.output.progress import progress_line, reporting
from penstock.repl.output.row_target import RowTarget
from penstock.repl.output.row_writers import MACHINE_FORMATS, Writer, writer_for
from penstock.repl.output.status_reports import StatusReports
from penstock.repl.output.table_rendering import Look, fits, table_lines

# Rows before such a pause were there; those behind it are new.
_PAUSE_S = 0.5


@dataclass
class Style:
    """How results are printed. ``mode``: ``auto``, ``table`` (final rows) or ``changelog``; ``vertical``:
    ``on``, ``off`` or ``auto``; ``pager``: pages for bounded results on a terminal.
    """

    format: str = "table"
    look: Look = field(default_factory=Look)
    mode: str = "auto"
    vertical: str = "auto"
    timing: bool = False
    terminal: bool = False
    pager: bool = False


class Printer:
    """Writes results to one stream, and notes about them to ``messages``. ``last``: the rows of the last
    query's result. ``pager``: shows bounded results that do not fit the screen. ``status``: the status
    reports of the result that is being printed. ``how_to_ask``: how its user asks for one.
    ``awaits_result``: a statement is being run whose result is not there yet.
    """

    def __init__(
        self,
        out: TextIO,
        messages: Messages,
        style: Style,
        live: Callable[[Result, TextIO, Style, StatusReports, Callable[[pa.Table], None]], int] | None = None,
    ) -> None:
        self.settings: Settings | None = None
        self.status: StatusReports | None = None
        self.how_to_ask = ""
        self.awaits_result = False
        self.out = out
        self.messages = messages
        self.style = style
        self.last: LastRows | None = None
        self.pager: Pager | None = None
        self._live = live
        self._keeps = True
        self._redirection = ExitStack()

    def send_to(self, target: str | None) -> None:
        """Print rows into a file or a command's input from now on; None: on the screen again."""
        self._redirection.close()
        if target is not None:
            self._redirection.enter_context(self.sent_to(target))

    @contextmanager
    def sent_to(self, target: str) -> Iterator[None]:
        """Print rows into a file, or with ``| command`` into a command's input, within the block."""
        opened, style = RowTarget(target), self.style
        screen, look, terminal = self.out, style.look, style.terminal
        # Rows in a file have no colors, are not cut, and are not redrawn.
        self.out, style.terminal = opened.out, False
        style.look = replace(look, color=False, width=None, max_rows=None)
        try:
            yield
        # The command has read enough, such as head.
        except BrokenPipeError:
            pass
        finally:
            self.out, style.terminal = screen, terminal
            # What a command has set meanwhile, such as the sign of NULL, stays.
            style.look = replace(style.look, color=look.color, width=look.width, max_rows=look.max_rows)
            if code := opened.close():
                self.messages.note(f"{target.lstrip('| ')} ended with exit code {code}")

    @contextmanager
    def awaiting_result(self) -> Iterator[None]:
        """A request for a status within the block is answered by what is awaited."""
        self.awaits_result = True
        try:
            yield
        finally:
            self.awaits_result = False

    def show(self, result: Result, *, keep: bool = True, tail: int | None = None) -> None:
        """Print one result to its end. KeyboardInterrupt stops the result and is raised again. ``keep``:
        its rows are the last ones, which are printed again on demand. ``tail``: of the rows that are there
        only so many, the newest, and then what comes.
        """
        self._keeps = keep
        started = time.perf_counter()
        try:
            rows = self._rows_and_status(result, tail)
        except MemoryError as error:
            result.cancel()
            raise result.locate(out_of_memory(error, "hold the rows of the result")) from error
        # Ctrl-C and a closed pipe too: nothing computes for a reader that is gone.
        except BaseException:
            result.cancel()
            raise
        if result.note:
            self.messages.note(result.note)
        SLOW_STEPS.report_compiled()
        if self.style.timing:
            elapsed = time.perf_counter() - started
            count = f"{rows:,} row{'' if rows == 1 else 's'} in " if result.has_rows else ""
            self.messages.note(f"{count}{elapsed:.2f} s")

    def _rows_and_status(self, result: Result, tail: int | None) -> int:
        if not result.has_rows:
            return 0
        every_ms = 0 if self.settings is None else int(self.settings.get("result-status-interval"))
        status = self.status = StatusReports(result, every_ms / 1000, self.how_to_ask)
        # a table that is drawn in place prints notes itself, above its frame
        drawn = tail is None and self._draws(result)
        try:
            with reporting(None if drawn else result.job, None if drawn else status, self.messages):
                return self._rows(result, status) if tail is None else self._tail(result, tail, status)
        finally:
            self.status = None

    def _rows(self, result: Result, status: StatusReports) -> int:
        shape, style = result.shape, self.style
        changing = shape.updating
        # changelog mode: every change with its op
        if changing and self._wants_changes(result):
            changes = result.changes()
            return self._stream(result, changes, result.change_schema, ["STRING", *kinds_of(result)], status)
        # a terminal: the table is redrawn in place
        if self._live is not None and self._draws(result):
            return self._live(
                result,
                self.out,
                style,
                status,
                lambda rows: self._keep(rows.schema, kinds_of(result)).add_table(rows),
            )
        # an endless result has no final rows: changes, where it cannot be redrawn
        if not shape.finite and changing:
            changes = result.changes()
            return self._stream(result, changes, result.change_schema, ["STRING", *kinds_of(result)], status)
        # insert-only rows are final as they come
        if not shape.finite or (style.format in MACHINE_FORMATS and not shape.folds):
            return self._stream(result, result.batches(), result.arrow_schema, kinds_of(result), status)
        status.heading = lambda: self._heading(result.arrow_schema, kinds_of(result))
        with progress_line(result, sys.stderr):
            rows = result.final_rows()
        status.rows_came()
        # lines of text, such as plans: without a frame
        if shape.verbatim and style.format in ("table", "vertical"):
            self.lines(rows.column(0).to_pylist())
            return rows.num_rows
        self._keep(rows.schema, kinds_of(result)).add_table(rows)
        self.table(rows, kinds_of(result))
        return rows.num_rows

    def _keep(self, schema: pa.Schema, kinds: list[str]) -> LastRows:
        """Return where the rows of a result are kept."""
        kept = LastRows(schema, kinds)
        if self._keeps:
            self.last = kept
        return kept

    def _tail(self, result: Result, most: int, status: StatusReports) -> int:
        """Print the newest rows that are there, and then what comes."""
        kinds, schema = ["STRING", *kinds_of(result)], result.change_schema
        plain = result.shape.insert_only and not result.shape.subscribed
        # Rows that are only added need no op.
        drop = 1 if plain else 0
        columns = schema.names[drop:]

        def rows(timeout_s: float | None = None) -> Iterator[pa.RecordBatch]:
            return (batch.select(columns) for batch in result.changes(timeout_s))

        def newest() -> Iterator[pa.RecordBatch]:
            there = LastRows(pa.schema(list(schema)[drop:]), kinds)
            # A job takes a moment to start: the first rows may take any time, a pause behind them ends them.
            if (first := next(rows(), None)) is not None:
                there.add(first)
                for batch in rows(_PAUSE_S):
                    there.add(batch)
            yield from there.rows(most).to_batches()
            yield from rows()

        kinds = kinds_of(result) if plain or result.shape.subscribed else kinds
        return self._stream(result, newest(), pa.schema(list(schema)[drop:]), kinds, status)

    def _draws(self, result: Result) -> bool:
        """Whether a changing result is drawn in place."""
        style = self.style
        drawn = self._live is not None and style.terminal and style.format == "table" and result.has_rows
        return drawn and result.shape.updating and not self._wants_changes(result)

    def _wants_changes(self, result: Result) -> bool:
        """Whether each change is printed: by ``\\mode`` or the setting ``result-mode``, else in formats
        that programs read. Not for a result that ends and has an ORDER BY: only final rows have an order.
        """
        mode, settings = self.style.mode, self.settings
        if mode == "auto" and settings is not None and settings.is_set("result-mode"):
            mode = str(settings.get("result-mode"))
        if mode == "auto":
            return self.style.format in MACHINE_FORMATS and not (result.shape.order and result.shape.finite)
        return mode == "changelog"

    def table(self, rows: pa.Table, kinds: list[str], *, whole: bool = False) -> None:
        """Print a complete table of rows; ``whole``: without a limit of rows."""
        style = self.style
        name, look = style.format, self._look()
        if whole:
            look = replace(look, max_rows=None)
        if name == "table" and (
            style.vertical == "on"
            or (style.vertical == "auto" and style.terminal and not fits(rows, kinds, look))
        ):
            name = "vertical"
        if name in ("table", "vertical") or rows.num_rows == 0:
            rows = rows.combine_chunks()
        with self._paged() as out:
            writer = writer_for(name, out, look)
            writer.begin(rows.schema, kinds)
            for batch in rows.to_batches():
                writer.write(batch)
            writer.end()

    def lines(self, lines: Sequence[str]) -> None:
        """Print lines of text as they are."""
        with self._paged() as out:
            out.write("\n".join(lines) + "\n")

    @contextmanager
    def _paged(self) -> Iterator[TextIO]:
        """Give the stream of a bounded result, whose text goes through the pager where it is too long."""
        # arrow is bytes, which no pager shows
        if (
            self.pager is None
            or not (self.style.pager and self.style.terminal)
            or self.style.format == "arrow"
        ):
            yield self.out
            self.out.flush()
            return
        text = io.StringIO()
        yield text
        if not self.pager.show(text.getvalue()):
            self.out.write(text.getvalue())
            self.out.flush()

    def _heading(self, schema: pa.Schema, kinds: list[str]) -> list[str]:
        return table_lines(
            pa.Table.from_batches([], schema), kinds, replace(self._look(), color=False, show_heading=True)
        )

    def _stream(
        self,
        result: Result,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        kinds: list[str],
        status: StatusReports,
    ) -> int:
        # max_rows is for complete tables: a stream is printed to its end.
        writer: Writer = writer_for(self.style.format, self.out, replace(self._look(), max_rows=None))
        status.heading = lambda: self._heading(schema, kinds)
        # no header before an error that comes in place of rows
        first = list(itertools.islice(batches, int(result.shape.finite)))
        writer.begin(schema, kinds)
        count = 0
        kept = self._keep(schema, kinds)
        for batch in itertools.chain(first, batches):
            status.rows_came()
            kept.add(batch)
            writer.write(batch)
            count += batch.num_rows
        writer.end()
        return count

    def _look(self) -> Look:
        return self.style.look


def kinds_of(result: Result) -> list[str]:
    """Return the SQL types' names of a result's columns."""
    return [str(column.type) for column in result.schema]


def silence_broken_pipe() -> None:
    """Avoid an error at exit about a reader that has closed the pipe."""
    import os

    # Python flushes stdout at exit, which would fail once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
