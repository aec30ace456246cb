import os
import subprocess
import sys

import pytest

from penstock.repl.cli import main
from penstock.repl.launch.arguments import PARSERS, command_first
from penstock.repl.launch.job_arguments import JOB_COMMANDS
from tests.harness.patience import PATIENCE_S

HEAVY = ("pyspark", "numba", "duckdb", "pandas")


def penstock(*words, stdin="", env=None):
    return subprocess.run(
        [sys.executable, "-m", "penstock.repl.cli", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=env,
        check=False,
    )


def exit_code(words):
    """Run the command line in this process; return what it exits with."""
    try:
        return main(list(words))
    except SystemExit as end:
        return end.code


def test_help_fits_a_screen_and_has_examples():
    for words in (("--help",), ("run", "--help")):
        done = penstock(*words)
        assert done.returncode == 0
        assert done.stdout.count("\n") <= 40
        assert "examples:" in done.stdout
        assert done.stderr == ""


def test_version():
    assert penstock("--version").stdout.startswith("penstock 0.")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--format", "cvs"), 2, 'did you mean "csv"?'),
        (("run", "--chek"), 2, 'did you mean "--check"?'),
        (("--chek", "run"), 2, 'did you mean "--check"?'),
        (("run",), 2, "required: FILE"),
        (("checkpoint", "ls"), 2, "required: DIR\n"),
        (("rnu",), 2, 'did you mean "run"?'),
        (("serve",), 2, "--state DIR is needed"),
        (("penstock://there:1",), 3, "cannot connect"),
        (("-c", "SELECT 1", "--set", "x"), 2, "--set takes name=value"),
        (("-c", "SELECT 1", "--timeout", "-1"), 2, "seconds above 0"),
        (("-c", "SELECT 1", "-p", "0"), 2, "above 0"),
        (("-f", "no-such-file.sql"), 2, "cannot read no-such-file.sql"),
    ],
)
def test_usage_errors(words, code, said, capsys):
    assert exit_code(words) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def test_a_usage_error_ends_the_process():
    done = penstock("--fromat", "csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'did you mean "--format"?' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--set k=v run job.sql --state st", "run --set k=v job.sql --state st"),
        ("-p 2 --state st run job.sql", "run -p 2 --state st job.sql"),
        ("--format=csv -v run a.sql b.sql", "run --format=csv -v a.sql b.sql"),
        ("--state st jobs", "jobs --state st"),
        ("--catalog run run run", "run --catalog run run"),
        ("run jobs", "run jobs"),
        ("-c run", "-c run"),
        ("-f jobs --csv", "-f jobs --csv"),
        ("-c SELECT --state jobs", "-c SELECT --state jobs"),
        ("penstock://there:1 run", "penstock://there:1 run"),
        ("--csv", "--csv"),
    ],
)
def test_options_may_stand_before_the_command(words, expected):
    assert command_first(words.split()) == expected.split()


NEEDED = {
    "run": ["a.sql", "b.sql"],
    "fmt": ["a.sql", "b.sql"],
    "checkpoint": ["diff", "st", "1", "2"],
    "spark": ["status"],
    "user": ["role", "ann", "admin"],
    "rescale": ["job", "2"],
    **{name: ["job"] for name in JOB_COMMANDS if name != "rescale"},
}
# flags without which a command is refused
REQUIRED = {"jobs": ["--state", "st"], "recover": ["--state", "st"], "user": ["--users", "st"]}


@pytest.mark.parametrize("command", PARSERS)
def test_every_option_may_be_before_behind_and_between(command):
    """Each option of each command gives the same, wherever it is."""
    names = NEEDED.get(command, [])
    state = REQUIRED.get(command, [])
    for action in PARSERS[command]()._actions:
        for flag in set(action.option_strings) - {"-h", "--help", "--state", "--users"}:
            value = action.choices[-1] if action.choices else "1"
            option = [flag] if action.nargs == 0 else [flag, value]
            ways = [
                [command, *state, *option, *names],
                [command, *names, *state, *option],
                [*option, *state, command, *names],
                [*state, command, *names[:1], *option, *names[1:]],
            ]
            parsed = [vars(PARSERS[command]().parse_words(command_first(words)[1:])) for words in ways]
            assert all(one == parsed[0] for one in parsed), (command, flag)
            assert parsed[0] != vars(PARSERS[command]().parse_words([*state, *names])), (command, flag)


def test_files_behind_two_dashes_may_be_named_like_options():
    assert PARSERS["run"]().parse_words(["--csv", "--", "--odd.sql", "a.sql"]).files == ["--odd.sql", "a.sql"]


def test_a_script_runs_with_options_on_both_sides(tmp_path):
    (tmp_path / "job.sql").write_text("SELECT 1 AS one;\n")
    done = penstock(
        "--set",
        "parallelism.default=1",
        "--csv",
        "run",
        str(tmp_path / "job.sql"),
        "--state",
        str(tmp_path / "state"),
    )
    assert (done.returncode, done.stdout) == (0, "one\n1\n"), done.stderr


def seconds(code):
    """Return the least processor time of a few runs: what others do on the machine does not count."""
    spent = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = os.times()
        spent.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    return min(spent)


def test_the_door_is_light():
    code = f"import sys, penstock; assert not [m for m in {HEAVY!r} if m in sys.modules]"
    assert seconds(code) < 0.4


def test_the_prompt_waits_for_nothing_heavy():
    modules = (*HEAVY, "pyarrow", "sqlglot", "numpy")
    code = "import sys, penstock.repl.shell.shell, penstock.repl.launch.session_factory, penstock.repl.shell.editor, penstock.repl.shell.completion\n"
    code += f"assert not [m for m in {modules!r} if m in sys.modules]"
    assert seconds(code) < 0.6


def test_help_is_quick():
    assert (
        seconds("import sys; sys.argv = ['penstock', '--help']; from penstock.repl.cli import main; main()")
        < 0.4
    )
