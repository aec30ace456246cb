"""The package as a program sees it: everything under one name, whatever lies beside the program's script."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import penstock
from penstock.client import dbapi_errors
from penstock.engine.deploy.spark.code_archive import package_files
from tests.harness.package_tree import PACKAGES
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = f"""
import {", ".join(PACKAGES)}
import penstock

if __name__ == "__main__":
    connection = penstock.connect(settings={{"deployment": "processes", "parallelism.default": "2"}})
    connection.execute(
        "CREATE TEMPORARY TABLE t (k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000', 'fields.k.max' = '0', 'fields.k.min' = '0')"
    )
    print(connection.execute("SELECT k, COUNT(*) FROM t GROUP BY k").fetchall())
    try:
        connection.execute("SELEC 1")
    except penstock.ProgrammingError as error:
        print(type(error))
    connection.close()
"""


def test_a_script_runs_beside_files_of_any_name(tmp_path: Path) -> None:
    """Also its worker processes, which are started with the script's directory as theirs."""
    for name in set(PACKAGES) - {"engine"}:
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").touch()
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout.splitlines() == ["[(0, 1000)]", "<class 'penstock.ProgrammingError'>"], done.stderr


def test_a_main_file_run_by_its_path_hides_nothing(tmp_path: Path) -> None:
    """As ``spark-submit`` runs it: what lies beside it is importable by the package's name only."""
    (tmp_path / "client.py").touch()
    main = Path(penstock.__file__).with_name("__main__.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(main), "-c", "SELECT 1 AS one", "--csv"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout.splitlines() == ["one", "1"], done.stderr


def test_what_is_exported_is_there() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    errors = {name for name in vars(dbapi_errors) if name[0].isupper() and name != "PenstockError"}
    exported = {name for name in errors if getattr(dbapi_errors, name).__module__ == "penstock"}
    assert exported == {"Warning", "InterfaceError", "Error"} | {
        name for name in penstock.__all__ if name.endswith("Error") and name != "PenstockError"
    }


def test_every_folder_is_installed() -> None:
    """setup.py finds packages by their ``__init__.py``; pyproject.toml says where each lies."""
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-dir"
    ]
    assert said == {"penstock": "penstock", **{f"penstock.{package}": package for package in PACKAGES}}
    (listed,) = [
        node.value
        for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
    ]
    assert ast.literal_eval(listed) == PACKAGES


def test_what_is_shipped_has_the_names_it_is_installed_with() -> None:
    files = package_files(("catalog", "engine"))
    assert files["penstock/__init__.py"].is_file()
    assert files["penstock/catalog/errors.py"] == ROOT / "catalog" / "errors.py"
    assert all(name.startswith("penstock/") and path.is_file() for name, path in files.items())
