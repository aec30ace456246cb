from __future__ import annotations

from pathlib import Path

from penstock.catalog.settings import Settings
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.restart_strategy import ExponentialDelay, FixedDelay, NoRestart


def test_options_come_from_settings() -> None:
    settings = Settings()
    options = JobOptions.from_settings(settings, name="flights")
    assert options.name == "flights"
    assert options.state_dir is None
    assert (options.batch_max_rows, options.buffer_timeout_ms, options.checkpoint_interval_ms) == (
        262144,
        10,
        0,
    )
    assert options.restart == ExponentialDelay(attempts=10, delay=1000, max_delay=60_000)
    for key, value in {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": "states",
        "execution.buffer-timeout": "0 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.attempts": "4",
        "restart-strategy.delay": "20 ms",
        "pipeline.name": "named",
    }.items():
        settings.set(key, value)
    options = JobOptions.from_settings(settings)
    assert (options.name, options.state_dir, options.checkpoint_interval_ms, options.buffer_timeout_ms) == (
        "named",
        Path("states"),
        1000,
        0,
    )
    assert options.restart == FixedDelay(attempts=4, delay=20)
    assert JobOptions.from_settings(settings, state_dir=Path("mine")).state_dir == Path("mine")
    settings.set("restart-strategy.type", "none")
    assert JobOptions.from_settings(settings).restart == NoRestart()
