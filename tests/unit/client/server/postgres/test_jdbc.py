"""PostgreSQL's driver of JDBC, through which Java's tools come: Debian has it as libpostgresql-jdbc-java."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE_S

DRIVER = Path("/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).with_name("JdbcProbe.java")
TYPED = [
    "numbers: 1099511627776 1.5 12.34",
    'others: 1 true {"1","2"}',
    "times: 2024-01-02T03:04:05 2024-02-29",
    "columns: int8 numeric 10 a",
]
EXPECTED = [
    "product: PostgreSQL",
    "schema: default_database",
    "table: jdbc_endless TABLE",
    "table: jdbc_t TABLE",
    "table: jdbc_v VIEW",
    "column: k int8 19 NO",
    "column: name text 2147483647 YES",
    "column: d numeric 10 YES",
    "key: k",
    "index: k",
    "types: true",
    "prepared: abnullabnullabnull",
    "parameters: int4",
    # first as text, then as binary values of a named statement
    *TYPED,
    *TYPED,
    # of an endless result, by its fetch size
    "fetched: 50",
    "refused: 42703 true true",
    "cancelled: 57014",
    "timed out: 57014",
]


@pytest.mark.at_length  # a Java machine compiles and runs the program: four seconds
@pytest.mark.skipif(not DRIVER.exists(), reason="apt-get install libpostgresql-jdbc-java has the driver")
@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no compiler of Java")
def test_a_java_program_browses_reads_and_cancels(server):
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/me"
    done = subprocess.run(
        ["java", "-cp", str(DRIVER), str(PROGRAM), url],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines() == EXPECTED, done.stderr
