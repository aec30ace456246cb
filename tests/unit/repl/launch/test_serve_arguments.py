"""The flags of ``penstock serve`` and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.repl.launch.serve_arguments import serve_arguments, serve_parser


def parsed(*words: str):
    return serve_arguments(serve_parser(), words)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as raised:
        parsed(*words)
    assert raised.value.code == 2
    return capsys.readouterr().err


def test_flags_overrule_the_file_and_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(
        'state = "/var/lib/penstock"\nflight-port = 8815\nmax-memory = "2g"\nidle-timeout = 60\n'
        '[settings]\nparallelism.default = 2\nexecution.checkpointing.interval = "5 s"\n'
    )
    from_file = parsed("--config", str(path))
    assert (from_file.state, from_file.flight_port, from_file.max_memory, from_file.idle_timeout) == (
        "/var/lib/penstock",
        8815,
        2 << 30,
        60,
    )
    assert from_file.settings == ["parallelism.default=2", "execution.checkpointing.interval=5 s"]
    over = parsed("--config", str(path), "--flight-port", "0", "--set", "parallelism.default=3")
    assert (over.flight_port, over.settings[-1]) == (0, "parallelism.default=3")


def test_usage_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.toml"
    assert "--state DIR is needed" in refused(capsys)
    assert "is not a port" in refused(capsys, "--state", "s", "--flight-port", "70000")
    assert "is not a size" in refused(capsys, "--state", "s", "--max-memory", "lots")
    assert "go together" in refused(capsys, "--state", "s", "--tls-cert", "c")
    path.write_text("fligth-port = 1\n")
    assert 'did you mean "--flight-port"' in refused(capsys, "--config", str(path))
    path.write_text("flight-port = true\nflight-port = 1\n")
    assert "cannot read" in refused(capsys, "--config", str(path))
    path.write_text("max-sessions = -1\n")
    assert "--max-sessions" in refused(capsys, "--config", str(path))
