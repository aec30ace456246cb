"""The main job's process is killed in mid-run, again and again, and started over what it left: the Parquet is
DuckDB's answer, exactly once.

Moments are drawn from a seed; the replay is slowed down so that every kill lands in mid-run. Of the year's
flights each twelfth is read; the soak (``python -m tests.streaming.three_acts.soak``) reads all. The negative controls show
that a wrong result is seen.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.harness.length import of_length
from tests.streaming.three_acts.main_job import rows_in, sample
from tests.streaming.three_acts.oracle import assert_same
from tests.streaming.three_acts.victim import Victim

# each third waits until rows are published
KILLS = of_length(2, 3)
LONGEST_S = 0.5
EVERY = 12  # flights of the year
ROWS_PER_SECOND = 2_500  # the year in 11 s, far more than all kills together leave


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with each twelfth flight."""
    return sample(tmp_path_factory.mktemp("few") / "flights", EVERY)


@pytest.fixture
def victim(tmp_path: Path, few: Path) -> Iterator[Victim]:
    made = Victim(tmp_path, ROWS_PER_SECOND, flights=few)
    yield made
    made.reap()


def kill_and_finish(victim: Victim, random: Random, kills: int) -> Counter[str]:
    """Kill a run ``kills`` times, let it finish, demand the answer; return what the kills have hit.

    Of the last three, one comes while the job finds its feet, one while checkpoints come and go, one while
    files do.
    """
    hit: Counter[str] = Counter()
    for number in range(kills):
        victim.start(parallelism=random.choice((1, 2)))
        victim.await_running()
        if (number + 3 - kills) % 3 == 1:
            victim.await_checkpoint()
        if (number + 3 - kills) % 3 == 2:
            victim.await_published()
        time.sleep(random.uniform(0, LONGEST_S))
        victim.kill()
        hit["killed"] += 1
        hit["after a checkpoint"] += victim.checkpointed
        hit["with rows published"] += bool(victim.published())
        hit["with rows staged"] += bool(victim.staged())
        hit["while a checkpoint was written"] += any(path.suffix == ".tmp" for path in victim.state.glob("*"))
    victim.start(parallelism=random.choice((1, 2)), slowly=False)
    victim.end()
    assert_same(rows_in(victim.out), "flights", victim.flights)
    assert not victim.staged(), "staged files are left"
    return hit


@pytest.mark.longer
def test_killed_at_any_moment_it_writes_every_row_once(victim: Victim) -> None:
    hit = kill_and_finish(victim, Random(2013), KILLS)
    assert hit["killed"] == KILLS
    assert hit["after a checkpoint"] >= KILLS // 2, hit
    assert hit["with rows published"], hit
    assert (victim.state / "FINISHED").exists()

    files = victim.published()
    victim.start()
    victim.end()
    assert "had finished before, nothing was written" in victim.told
    assert victim.published() == files, "a finished job was run again"


@pytest.mark.at_length
@pytest.mark.longer
def test_asked_to_stop_it_takes_a_checkpoint_and_goes_on(victim: Victim) -> None:
    for parallelism in of_length((2,), (1, 2)):
        victim.start(parallelism=parallelism)
        victim.await_checkpoint()
        time.sleep(LONGEST_S)
        assert victim.stop() == 130, victim.told
        assert "stopping with a checkpoint" in victim.told
        assert not victim.staged(), "what the last checkpoint holds was not committed"
        assert not (victim.state / "FINISHED").exists()
        assert b'"kind":"stop"' in newest_manifest(victim)
    victim.start(slowly=False)
    victim.end()
    assert_same(rows_in(victim.out), "flights", victim.flights)


def newest_manifest(victim: Victim) -> bytes:
    return max(
        victim.state.glob("chk-*.manifest.json"), key=lambda path: path.stat().st_mtime_ns
    ).read_bytes()


@pytest.mark.at_length
def test_rows_published_before_their_checkpoint_are_seen_twice(victim: Victim) -> None:
    victim.module, victim.interval = "tests.streaming.three_acts.hasty_sink", "1 s"
    for _ in range(2):
        victim.start()
        victim.await_published()
        victim.kill()
    victim.start(slowly=False)
    victim.end()
    with pytest.raises(AssertionError, match="extra"):
        assert_same(rows_in(victim.out), "flights", victim.flights)


@pytest.mark.at_length
def test_a_lost_state_is_seen(victim: Victim) -> None:
    victim.start()
    victim.await_published()
    victim.kill()
    shutil.rmtree(victim.state)
    victim.start(slowly=False)
    victim.end()
    with pytest.raises(AssertionError, match="extra"):
        assert_same(rows_in(victim.out), "flights", victim.flights)
