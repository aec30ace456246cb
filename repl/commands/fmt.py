"""``penstock fmt``: scripts in one layout. A file is written only when its statements stay the same and its
text changes.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.planner.formatter.formatter import format_script
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, EXIT_USAGE
from penstock.repl.launch.script_runner import UNREADABLE, read_script
from penstock.repl.launch.session_factory import messages_for
from penstock.repl.output.messages import Messages
from penstock.repl.sql_tests.declarations import SUFFIXES


def run_fmt(arguments: argparse.Namespace) -> int:
    """Format files, or report with --check or --diff what would change, and return the exit code. A file with
    an error stays as it is; the others are formatted.
    """
    messages = messages_for(arguments)
    worst, changed, same = EXIT_OK, 0, 0
    try:
        names = [name for given in arguments.files for name in _scripts(given)]
    except PenstockError as error:
        messages.error(error)
        return EXIT_USAGE
    for name in names:
        try:
            text = read_script(name)
            done = format_script(text, None if name == "-" else name)
        except PenstockError as error:
            messages.error(error)
            worst = max(worst, EXIT_USAGE if error.code == UNREADABLE else EXIT_QUERY)
            continue
        # each statement that cannot be parsed
        except ExceptionGroup as group:
            for found in group.exceptions:
                assert isinstance(found, PenstockError), "a script's errors are ours"
                messages.error(found)
            worst = max(worst, EXIT_QUERY)
            continue
        if text == done:
            same += 1
        else:
            changed += 1
        worst = max(worst, _answer(arguments, name, text, done, messages))
    _summarize(arguments, messages, changed, same)
    return worst


def _scripts(name: str) -> list[str]:
    """Return a file, or the .sql files below a directory that are no tests."""
    path = Path(name)
    if name == "-" or not path.is_dir():
        return [name]
    # tests of scripts have statements of their own, which penstock test parses
    found = sorted(
        str(each)
        for each in path.rglob("*.sql")
        if not _hidden(each.relative_to(path)) and not each.name.endswith(SUFFIXES)
    )
    if not found:
        raise PenstockError(
            "CLI-6151",
            f"there is no .sql file below {name}",
            hint="name the files themselves",
            kind=Kind.EXTERNAL,
            sqlstate="58030",
        )
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _answer(arguments: argparse.Namespace, name: str, text: str, done: str, messages: Messages) -> int:
    """Write the formatted text where it belongs and return the exit code."""
    shown = "stdin" if name == "-" else name
    if arguments.diff:
        lines = difflib.unified_diff(
            text.splitlines(), done.splitlines(), shown, f"{shown} (formatted)", lineterm=""
        )
        sys.stdout.writelines(f"{line}\n" for line in lines)
    if arguments.check or arguments.diff:
        if text != done and not arguments.diff:
            messages.note(f"{shown} would be formatted")
        return EXIT_QUERY if arguments.check and text != done else EXIT_OK
    # a filter: the text always comes out
    if name == "-":
        sys.stdout.write(done)
    elif text != done:
        try:
            _replace(Path(name), done)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            hint = "check who may write the file and its directory; nothing was changed"
            messages.error(
                PenstockError(
                    UNREADABLE,
                    f"cannot write {name}: {reason}",
                    hint=hint,
                    kind=Kind.EXTERNAL,
                    sqlstate="58030",
                )
            )
            return EXIT_USAGE
    return EXIT_OK


def _replace(path: Path, text: str) -> None:
    """Replace a file's text in one step, so that no reader and no crash sees half of it."""
    # a link stays a link
    target = path.resolve()
    mode = target.stat().st_mode
    # a read-only file is no file to replace, though its directory would allow it
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied")
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    staged = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        staged.chmod(mode & 0o7777)
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)


def _summarize(arguments: argparse.Namespace, messages: Messages, changed: int, same: int) -> None:
    if arguments.diff or arguments.files == ["-"]:
        return
    what = "would change" if arguments.check else "formatted"
    messages.note(f"{changed} {'file' if changed == 1 else 'files'} {what}, {same} left as they were")
