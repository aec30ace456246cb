"""Connectors of other packages: the package of the page is installed as a directory, listed, planned and run; a
broken one is named and breaks nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.connectors.registry import connector_named, is_secret
from penstock.catalog.errors import PenstockError
from penstock.client.session import Session

PAGE = Path(__file__).resolve().parents[4] / "docs" / "CONNECTOR_INTERFACE.md"


def install(folder: Path, module: str, entry: str, text: str) -> None:
    """Lay a package as an installer does: its module and its dist-info."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    name = module.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[penstock.connectors]\n{entry}\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path
    for module in ("acme_counter", "acme_broken"):
        sys.modules.pop(module, None)


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    install(folder / "site", "acme_counter", "counter = acme_counter:counter", blocks[0])
    session = Session({"table.dml-sync": "true", "parallelism.default": "2"})
    yield session
    session.close()


def rows(session: Session, statement: str) -> list[dict[str, object]]:
    return [row for batch in session.execute(statement).batches() for row in batch.to_pylist()]


CREATE = "CREATE TABLE n (n BIGINT) WITH ('connector' = 'counter', 'count' = '50', 'scan.parallelism' = '1')"


def test_the_package_of_the_page_is_listed_and_run(session: Session, folder: Path) -> None:
    listed = rows(session, "SHOW CONNECTORS LIKE 'count%'")
    assert listed[0]["help"] == "counts, and writes files (package acme-counter 1.2)"
    assert [row["option"] for row in listed] == [None, "count", "path"]
    session.execute(CREATE)
    assert rows(session, "SELECT COUNT(*) AS c, SUM(n) AS s FROM n") == [{"c": 100, "s": 2450}]
    session.execute(f"CREATE TABLE o (n BIGINT) WITH ('connector' = 'counter', 'path' = '{folder}/out')")
    session.execute("INSERT INTO o SELECT n FROM n")
    written = [row["n"] for path in (folder / "out").iterdir() for row in json.loads(path.read_text())]
    assert sorted(written) == sorted([*range(50), *range(50)])


def test_worker_processes_import_it(session: Session, folder: Path) -> None:
    session.execute("SET 'deployment' = 'processes'")
    session.execute(CREATE)
    assert rows(session, "SELECT COUNT(*) AS c FROM n") == [{"c": 100}]


def test_its_options_are_checked(session: Session) -> None:
    for options, code in (("'cnt' = '1'", "SQL-1503"), ("'count' = '-1'", "SQL-1505")):
        with pytest.raises(PenstockError, match=code):
            session.execute(f"CREATE TABLE x (n BIGINT) WITH ('connector' = 'counter', {options})")
    with pytest.raises(PenstockError, match='did you mean "counter"'):
        session.execute("CREATE TABLE x (n BIGINT) WITH ('connector' = 'countr')")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import no_such_library", "DAT-5610", "cannot be imported: ModuleNotFoundError"),
        ("broken = 7", "DAT-5611", "registers acme_broken:broken, no ConnectorPlugin"),
        (
            "from penstock.catalog.connectors.connector import Connector\n"
            "from penstock.catalog.connectors.third_party import ConnectorPlugin\n"
            "broken = ConnectorPlugin(Connector('broken', 'x', sink=True))",
            "DAT-5611",
            "declares a sink and has no factory of it",
        ),
    ],
)
def test_a_broken_package_is_named_and_breaks_nothing_else(
    folder: Path, text: str, code: str, said: str
) -> None:
    install(folder / "site", "acme_broken", "broken = acme_broken:broken", text)
    with pytest.raises(PenstockError) as refused:
        connector_named("broken")
    assert refused.value.code == code
    assert refused.value.message.startswith("connector 'broken' of package acme-broken 1.2 ")
    assert said in refused.value.message
    assert is_secret("broken", "password") and not is_secret("broken", "path")
    session = Session()
    try:
        (row,) = rows(session, "SHOW CONNECTORS LIKE 'broken'")
        assert row["use"] == "broken" and said in str(row["help"])
        assert rows(session, "SHOW CONNECTORS LIKE 'blackhole'")
    finally:
        session.close()


def test_the_names_of_penstock_stay_its_own(folder: Path) -> None:
    install(folder / "site", "acme_broken", "filesystem = acme_broken:broken", "broken = 7")
    assert connector_named("filesystem").help.startswith("csv")
