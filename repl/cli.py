"""The command line. Each command is imported when it runs, so that ``--help`` costs next to nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from penstock.repl.launch.arguments import (
    PARSERS,
    checkpoint_arguments,
    checkpoint_parser,
    command_first,
    doctor_parser,
    explain_error_parser,
    fmt_parser,
    init_parser,
    jobs_parser,
    recover_parser,
    run_parser,
    shell_parser,
    spark_parser,
    test_parser,
)
from penstock.repl.launch.job_arguments import JOB_COMMANDS
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_OK, EXIT_QUERY
from penstock.repl.launch.user_arguments import user_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _open_standard_streams()
    try:
        if os.environ.get("PENSTOCK_FAILPOINTS"):
            from penstock.engine.job.failpoint_arming import warn_of_failpoints

            warn_of_failpoints()
        # A program that calls main(argv) keeps its own garbage collection and its pandas.
        return _dispatch(words, own_process=argv is None)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    # `penstock .. | head`: the reader has enough, which is no failure.
    except BrokenPipeError:
        from penstock.repl.output.printer import silence_broken_pipe

        silence_broken_pipe()
        return EXIT_OK
    except OSError as error:
        # a file has a name: what has none here is stdout
        if argv is not None or error.filename is not None:
            raise
        return _report_stdout(error)


def _open_standard_streams() -> None:
    """Open what the program was started without, as by ``>&-``: a file of ours would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # it gets the least free number, which is that of the stream
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _report_stdout(error: OSError) -> int:
    from penstock.engine.api.print_stream import unwritable_stdout
    from penstock.repl.output.printer import silence_broken_pipe

    silence_broken_pipe()
    sys.stderr.write(f"{unwritable_stdout(error).render()}\n")
    return EXIT_QUERY


def _dispatch(words: list[str], *, own_process: bool) -> int:
    words = command_first(words)
    command = _COMMANDS.get(words[0]) if words else None
    if command is not None:
        return command(words[1:], own_process)
    parser = shell_parser()
    # `penstock rum job.sql`: the first word would be taken for a URL
    if len(words) > 1:
        parser.refuse_command(words)
    arguments = parser.parse_words(words)
    if arguments.version:
        from importlib.metadata import version  # 20 ms that only this flag pays

        sys.stdout.write(f"penstock {version('penstock')}\n")
        return EXIT_OK
    _prepare(own_process)
    # -c, -f, or statements from a pipe: no shell
    if arguments.commands or arguments.files or (not sys.stdin.isatty() and not arguments.interactive):
        from penstock.repl.commands.run import run_batch

        return run_batch(arguments, parser)
    from penstock.repl.shell.shell import run_shell

    return run_shell(arguments, parser)


def _serve(words: list[str], own_process: bool) -> int:
    from penstock.repl.launch.serve_arguments import serve_arguments, serve_parser

    parser = serve_parser()
    arguments = serve_arguments(parser, words)
    _prepare(own_process)
    from penstock.repl.commands.serve import serve

    return serve(arguments, parser)


def _init(words: list[str], own_process: bool) -> int:
    arguments = init_parser().parse_words(words)
    from penstock.repl.commands.init import make_project

    return make_project(arguments)


def _run(words: list[str], own_process: bool) -> int:
    parser = run_parser()
    arguments = parser.parse_words(words)
    _prepare(own_process)
    if arguments.watch:
        from penstock.repl.commands.watch import watch_files

        return watch_files(arguments, parser)
    from penstock.repl.commands.run import run_files

    return run_files(arguments, parser)


def _fmt(words: list[str], own_process: bool) -> int:
    arguments = fmt_parser().parse_words(words)
    from penstock.repl.commands.fmt import run_fmt

    return run_fmt(arguments)


def _test(words: list[str], own_process: bool) -> int:
    parser = test_parser()
    arguments = parser.parse_words(words)
    _prepare(own_process)
    from penstock.repl.commands.test import run_tests

    return run_tests(arguments, parser)


def _checkpoint(words: list[str], own_process: bool) -> int:
    parser = checkpoint_parser()
    arguments = checkpoint_arguments(parser, words)
    _prepare(own_process)
    from penstock.repl.commands.checkpoint import run_checkpoint

    return run_checkpoint(arguments, parser)


def _jobs(words: list[str], own_process: bool) -> int:
    parser = jobs_parser()
    arguments = parser.parse_words(words)
    _prepare(own_process)
    from penstock.repl.commands.jobs import list_jobs

    return list_jobs(arguments, parser)


def _recover(words: list[str], own_process: bool) -> int:
    parser = recover_parser()
    arguments = parser.parse_words(words)
    _prepare(own_process)
    from penstock.repl.commands.jobs import recover_jobs

    return recover_jobs(arguments, parser)


def _doctor(words: list[str], own_process: bool) -> int:
    parser = doctor_parser()
    arguments = parser.parse_words(words)
    from penstock.repl.commands.doctor import run_doctor

    return run_doctor(arguments, parser)


def _explain_error(words: list[str], own_process: bool) -> int:
    arguments = explain_error_parser().parse_words(words)
    from penstock.repl.commands.explain_error import run_explain_error

    return run_explain_error(arguments)


def _spark(words: list[str], own_process: bool) -> int:
    arguments = spark_parser().parse_words(words)
    from penstock.repl.commands.spark import run_spark

    return run_spark(arguments)


def _user(words: list[str], own_process: bool) -> int:
    parser = user_parser()
    arguments = parser.parse_words(words)
    from penstock.repl.commands.user import run_user

    return run_user(arguments, parser)


def _job_command(name: str) -> Callable[[list[str], bool], int]:
    def run(words: list[str], own_process: bool) -> int:
        parser = PARSERS[name]()
        arguments = parser.parse_words(words)
        _prepare(own_process)
        from penstock.repl.commands.server_jobs import run_job_command

        return run_job_command(name, arguments, parser)

    return run


# each imports its command when it runs; the second argument says that the process is ours alone
_COMMANDS: dict[str, Callable[[list[str], bool], int]] = {
    "init": _init,
    "run": _run,
    "fmt": _fmt,
    "test": _test,
    "checkpoint": _checkpoint,
    "jobs": _jobs,
    "recover": _recover,
    "doctor": _doctor,
    "explain-error": _explain_error,
    "spark": _spark,
    "serve": _serve,
    "user": _user,
    **{name: _job_command(name) for name in JOB_COMMANDS},
}


def _prepare(own_process: bool) -> None:
    """Set up a process that is ours alone: it collects garbage less often, because imported modules stay,
    and leaves pandas out.
    """
    if own_process:
        import gc

        from penstock.repl.launch.pandas_probe import settle

        # the default of 700 collects dozens of times during the imports alone, and frees nothing there
        gc.set_threshold(50_000, 20, 20)
        settle()


if __name__ == "__main__":
    sys.exit(main())
