"""The command line. Each command is imported when it runs, so that ``--help`` costs next to nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from penstock.engine.kernels.compile_notice import notify_on_compile
from penstock.repl.launch.arguments import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    checkpoint_arguments,
    checkpoint_parser,
    command_first,
    doctor_parser,
    jobs_parser,
    recover_parser,
    run_parser,
    shell_parser,
    spark_parser,
)

_COMPILING = (
    "compiling kernels for this machine: once each, then they are cached (penstock doctor --compile: all "
    "at once)"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
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


def _dispatch(words: list[str], *, own_process: bool) -> int:
    words = command_first(words)
    # reserved for a server, so that a script named serve is not run by mistake
    if words[:1] == ["serve"]:
        sys.stderr.write(
            "error[CLI-6101]: this release has no server\nhint: penstock.connect() runs the engine "
            "inside your program\n"
        )
        return EXIT_USAGE
    if words[:1] == ["run"]:
        parser = run_parser()
        arguments = parser.parse_words(words[1:])
        _prepare(own_process)
        from penstock.repl.commands.run import run_files

        return run_files(arguments, parser)
    if words[:1] == ["checkpoint"]:
        checkpoints = checkpoint_parser()
        arguments = checkpoint_arguments(checkpoints, words[1:])
        _prepare(own_process)
        from penstock.repl.commands.checkpoint import run_checkpoint

        return run_checkpoint(arguments, checkpoints)
    if words[:1] == ["jobs"]:
        listing = jobs_parser()
        asked = listing.parse_words(words[1:])
        _prepare(own_process)
        from penstock.repl.commands.jobs import list_jobs

        return list_jobs(asked, listing)
    if words[:1] == ["recover"]:
        recovery = recover_parser()
        asked = recovery.parse_words(words[1:])
        _prepare(own_process)
        from penstock.repl.commands.jobs import recover_jobs

        return recover_jobs(asked, recovery)
    if words[:1] == ["doctor"]:
        doctor = doctor_parser()
        asked = doctor.parse_words(words[1:])
        from penstock.repl.commands.doctor import run_doctor

        return run_doctor(asked, doctor)
    if words[:1] == ["spark"]:
        asked = spark_parser().parse_words(words[1:])
        from penstock.repl.commands.spark import run_spark

        return run_spark(asked)
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
        if sys.stderr.isatty():
            notify_on_compile(lambda: print(_COMPILING, file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main())
