import io

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.client.results.result import Result, Shape
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.repl.output.live_table import LiveTable, show_live
from penstock.repl.output.printer import Style
from penstock.repl.output.status_reports import StatusReports
from penstock.repl.output.table_rendering import Look

SCHEMA = Schema((Field("k", STRING), Field("n", BIGINT)))


def batch(rows, weights=None):
    columns = [
        pa.array([row[0] for row in rows], pa.string()),
        pa.array([row[1] for row in rows], pa.int64()),
    ]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow()),
        None if weights is None else np.array(weights, np.int64),
    )


def changing():
    feed = ResultChannel()
    return feed, Result(Shape(SCHEMA, finite=False, insert_only=False, upsert_key=(0,), streamed=True), feed)


def test_frames_are_drawn_over_each_other_and_mark_what_changed():
    feed, result = changing()
    out = io.StringIO()
    table = LiveTable(result, out, Style(look=Look(color=True), terminal=True), started=0.0)
    feed.offer(batch([("a", 1), ("b", 1)]))
    assert table.take(0.1)
    table.frame(1.0, (80, 24))
    first = out.getvalue()
    assert "-- 2 rows, 2 changes/s, 1.0 s (Ctrl-C stops)" in first
    assert "\x1b[6F" not in first
    feed.offer(batch([("a", 1), ("a", 2)], [-1, 1]))
    table.take(0.1)
    table.frame(1.5, (80, 24))
    second = out.getvalue()[len(first) :]
    assert second.startswith("\x1b[6F\x1b[J")
    assert "\x1b[1m a" in second
    assert "\x1b[1m b" not in second
    assert "4 changes/s" in second


def test_a_frame_never_outgrows_the_terminal():
    feed, result = changing()
    out = io.StringIO()
    table = LiveTable(result, out, Style(terminal=True), started=0.0)
    feed.offer(batch([(f"key {i}", i) for i in range(500)]))
    table.take(0.1)
    table.frame(1.0, (40, 12))
    lines = out.getvalue().splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 40
    assert "rows not shown" in out.getvalue()


def test_a_result_that_ends_leaves_its_final_rows():
    feed, result = changing()
    out = io.StringIO()
    feed.offer(batch([("a", 1), ("b", 1)]))
    feed.offer(batch([("a", 1), ("a", 2)], [-1, 1]))
    feed.finish()
    kept = []
    assert show_live(result, out, Style(terminal=True), StatusReports(result, 3.0), kept.append) == 2
    assert kept[0].num_rows == 2
    assert sorted(line.replace(" ", "") for line in out.getvalue().splitlines()[-2:]) == ["a|2", "b|1"]


def test_a_status_stays_above_the_frames():
    _, result = changing()
    out = io.StringIO()
    table = LiveTable(result, out, Style(terminal=True), started=0.0)
    table.frame(1.0, (80, 24))
    table.print_above(["no row yet after 3 s", "  so: nothing came"])
    drawn = out.getvalue()
    assert drawn.endswith("\x1b[4F\x1b[Jno row yet after 3 s\n  so: nothing came\n")
    table.frame(2.0, (80, 24))
    # the next frame erases nothing of it
    assert not out.getvalue()[len(drawn) :].startswith("\x1b[")
