from __future__ import annotations

import errno
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api import failpoints
from penstock.engine.api.failpoints import POINTS, armed, failpoint
from penstock.engine.job.failpoint_arming import arm_from_environment, parse_points

ROOT = Path(__file__).resolve().parents[4]


def test_there_are_44_points_and_each_stands_in_the_code() -> None:
    assert len(POINTS) == 44
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "engine").rglob("*.py")
        if path.name != "failpoints.py"
    )
    placed = {
        name for call in re.findall(r"failpoint\(([^)]*)\)", text) for name in re.findall(r'"(\w+)"', call)
    }
    assert placed <= POINTS.keys()
    assert POINTS.keys() - placed == set()


def test_nothing_happens_unless_armed() -> None:
    hits: list[str] = []
    failpoint("C8")
    with armed({"C8": hits.append}):
        failpoint("C7")
        failpoint("C8")
    failpoint("C8")
    assert hits == ["C8"]
    assert failpoints._armed is None


def test_an_unknown_point_is_refused_with_the_nearest() -> None:
    with pytest.raises(PenstockError, match="no failpoint C88") as refused, armed({"C88": print}):
        pass
    assert refused.value.code == "CLI-6150"


def test_points_fail_as_told() -> None:
    points = parse_points("C8=raise@3; S4=raise(p=0.5,seed=7);W7=raise(times=2)")
    points["C8"]("C8")
    points["C8"]("C8")
    with pytest.raises(OSError, match="synced, not renamed") as raised:
        points["C8"]("C8")
    assert raised.value.errno == errno.EIO
    points["C8"]("C8")
    drawn = [_raises(points["S4"], "S4") for _ in range(50)]
    again = parse_points("S4=raise(p=0.5,seed=7)")["S4"]
    assert drawn == [_raises(again, "S4") for _ in range(50)]
    assert 10 < sum(drawn) < 40
    assert [_raises(points["W7"], "W7") for _ in range(4)] == [True, True, False, False]


def test_times_count_over_processes(tmp_path: Path) -> None:
    assert [_raises(parse_points("R2=raise(times=2)", tmp_path)["R2"], "R2") for _ in range(4)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("text", ["C8", "C8=explode", "C99=kill", "C8=raise(q=1)", "W7=delay(soon)"])
def test_text_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(PenstockError) as refused:
        parse_points(text)
    assert refused.value.code == "CLI-6150"


def test_the_environment_counts_in_tests_only() -> None:
    assert arm_from_environment({}) is None
    assert "ignored" in str(arm_from_environment({"PENSTOCK_FAILPOINTS": "C8=kill"}))
    assert failpoints._armed is None
    try:
        assert "C8" in str(arm_from_environment({"PENSTOCK_FAILPOINTS": "C8=kill", "PENSTOCK_TEST": "1"}))
        assert failpoints._armed is not None
    finally:
        failpoints.arm({})


def test_a_process_dies_where_it_is_told(tmp_path: Path) -> None:
    program = "from penstock.engine.job.failpoint_arming import warn_of_failpoints\nfrom penstock.engine.api.failpoints import failpoint\n"
    program += "warn_of_failpoints()\nfailpoint('C8')"
    environment = {"PENSTOCK_FAILPOINTS": "C8=kill", "PENSTOCK_TEST": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stderr.splitlines()[0].startswith("warning: failpoints are armed")
    assert "failpoint C8" in done.stderr


def _raises(point, name: str) -> bool:
    try:
        point(name)
    except OSError:
        return True
    return False
