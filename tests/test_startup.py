"""What a process may import before it needs it: counted in modules, not in seconds, so that a busy machine
fails nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
HEAVY = {"numba", "pandas", "duckdb", "pyspark", "py4j"}
ENGINE = {"numpy", "pyarrow", "sqlglot", "lark", "prompt_toolkit"}
TICKS = (
    "CREATE TEMPORARY TABLE ticks (k BIGINT, s STRING, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
    "WITH ('connector' = 'datagen', 'rows-per-second' = '100000', 'fields.k.max' = '99', 'fields.k.min' = '0', 'fields.s.values' = 'a,b')"
)
REPORT = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"


def modules_after(code: str) -> set[str]:
    """Return the modules of a fresh process that ran some code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code + REPORT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def first_row_of(query: str) -> str:
    code = f"import penstock\nconnection = penstock.connect()\nconnection.execute({TICKS!r})\n"
    return code + f"assert next(connection.execute({query!r}).changes())\nconnection.close()"


def command_line(*words: str) -> str:
    return f"import sys\nsys.argv = ['penstock', *{words!r}]\nfrom penstock.repl.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass"


def test_the_import_brings_no_library() -> None:
    modules = modules_after("import penstock")
    assert not modules & (HEAVY | ENGINE)
    assert len(modules) < 150


def test_help_brings_no_library() -> None:
    commands = (("--help",), ("--version",), ("run", "--help"))
    assert not modules_after("\n".join(command_line(*words) for words in commands)) & (HEAVY | ENGINE)


def test_a_query_without_state_needs_no_kernels() -> None:
    # a regular expression brings them behind its first 2,000 rows
    query = "SELECT UPPER(s) || 'x', v * 2, 0.908 * k, REPLACE(s, 'a', 'b') FROM ticks WHERE k > 5 AND s IN ('a', 'b')"
    assert not modules_after(first_row_of(query)) & HEAVY


def test_queries_with_state_bring_numba_alone() -> None:
    queries = (
        "SELECT s, COUNT(*), SUM(k), AVG(v), MAX(ts) FROM ticks GROUP BY s",
        "SELECT window_start, k, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '1' SECOND)) "
        "GROUP BY window_start, window_end, k",
        "SELECT a.k FROM ticks AS a JOIN ticks AS b ON a.k = b.k WHERE a.s IN ('a', 'b')",
        "SELECT k, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY ts DESC) AS n FROM ticks) WHERE n <= 1",
    )
    assert modules_after("\n".join(map(first_row_of, queries))) & HEAVY == {"numba"}


def test_checkpoints_of_two_slots_bring_no_pandas(tmp_path: Path) -> None:
    """Nor does going on from one: half a second of every recovery. Nor do metrics bring the listener of a
    Spark that is not there.
    """
    settings = {
        "parallelism.default": "2",
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(tmp_path),
    }
    code = f"import penstock\nconnection = penstock.connect(settings={settings!r})\nconnection.execute({TICKS!r})\n"
    code += "connection.execute(\"CREATE TEMPORARY TABLE nothing (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')\")\n"
    code += "job = connection.execute('INSERT INTO nothing SELECT k, COUNT(*) FROM ticks GROUP BY k').job\n"
    code += "while job.metrics().checkpoints_completed < 2:\n    assert not job.wait(0.01), job.error\n"
    modules_after(code)
    assert not modules_after(code) & (
        HEAVY - {"numba"} | {"penstock.engine.bounded.spark_results.result_rows"}
    )


def test_the_command_line_leaves_pandas_out_and_importable() -> None:
    pytest.importorskip("pandas")
    code = (
        command_line("-c", "SELECT 1 AS one, 'a' AS letter")
        + "\nassert 'pandas' not in sys.modules\nimport pandas, pyarrow"
    )
    code += "\nassert pyarrow.table({'a': [1]}).to_pandas().equals(pandas.DataFrame({'a': [1]}))"
    assert "pandas" in modules_after(code)


def test_kernels_are_loaded_when_they_are_called() -> None:
    code = "from penstock.engine.kernels import partition\nfrom penstock.engine.kernels.aggregates import accumulate\nassert not partition._counting_sort._dispatcher.overloads\n"
    code += "import numpy as np\npartition.counting_sort(np.arange(3), 3)\nassert len(partition._counting_sort._dispatcher.overloads) == 1"
    assert "numba" in modules_after(code)


def test_machine_code_is_loaded_without_what_compiles_it() -> None:
    code = "import numpy as np\nfrom penstock.engine.kernels.partition import counting_sort\ncounting_sort(np.arange(3), 3)"
    modules_after(code)  # compiles it, unless that was done before
    assert not modules_after(code) & {"numba.np.linalg", "numba.np.arraymath", "numba.typed.typeddict"}


def test_classes_are_not_compiled_one_by_one() -> None:
    """A compiled dataclass costs 0.6 ms of every start: those that are many are
    ``penstock.catalog.frozen_dataclass``'s.
    """
    code = first_row_of("SELECT s, COUNT(*) FROM ticks GROUP BY s")
    code += "\nfound = {made for name, module in list(sys.modules.items()) if name.startswith('penstock.') for made in vars(module).values() "
    code += (
        "if isinstance(made, type) and made.__module__ == name and '__dataclass_params__' in vars(made)}\n"
    )
    code += "compiled = {made for made in found if made.__init__.__code__.co_filename == '<string>'}\n"
    code += (
        "assert len(found) > 300 and len(compiled) < 90, (len(found), sorted(str(made) for made in compiled))"
    )
    modules_after("import sys\n" + code)


def test_the_grammar_is_not_analysed_at_each_start(tmp_path: Path) -> None:
    """Its tables, 0.2 s of work, are kept beside the byte code."""
    code = f"import sys\nsys.pycache_prefix = {str(tmp_path)!r}\nfrom penstock.planner.statements.grammar import parse_tree\nparse_tree('SHOW TABLES')"
    report = "\nfrom lark import load_grammar\nassert hasattr(load_grammar._get_parser, 'cache') is "
    modules_after(code + report + "True")
    modules_after(code + report + "False")


def test_a_connector_is_imported_with_its_first_table() -> None:
    modules = modules_after(first_row_of("SELECT s, COUNT(*) FROM ticks GROUP BY s"))
    others = {
        "filesystem_source",
        "filesystem_sink",
        "nexmark_source",
        "database_sink",
        "print_sink",
        "blackhole_sink",
    }
    assert "penstock.engine.connectors.generated.datagen_source" in modules
    assert not modules & (
        {f"penstock.engine.connectors.{name}" for name in others}
        | {"pyarrow._s3fs", "pyarrow._parquet", "penstock.engine.formats.registry"}
    )
