"""The parser of command lines: its exit codes, and errors that name the nearest flag or command. Imports
nothing but the standard library.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

EXIT_OK, EXIT_QUERY, EXIT_USAGE, EXIT_CONNECTION, EXIT_TIMEOUT = 0, 1, 2, 3, 4
EXIT_JOB, EXIT_DIFFERENT, EXIT_TEST_FAILED, EXIT_INTERRUPTED = 5, 6, 7, 130

# the first word decides: any other word is the URL of a server, or a mistake
COMMANDS = (
    "init",
    "run",
    "fmt",
    "test",
    "checkpoint",
    "jobs",
    "recover",
    "doctor",
    "explain-error",
    "spark",
    "serve",
    "user",
    "stop",
    "cancel",
    "savepoint",
    "rescale",
    "logs",
    "explain",
)

# flags that other command lines have
_FLAG_HINTS = {
    "--file": "write -f FILE",
    "--input": "write -f FILE",
    "-e": 'write -c "SELECT 1"',
    "--execute": 'write -c "SELECT 1"',
    "--command": 'write -c "SELECT 1"',
    "--query": 'write -c "SELECT 1"',
    "--output": "write --format json, and > out.json",
    "--output-format": "write --format json",
    "--conf": "write --set key=value",
    "--config": "write --set key=value",
    "--define": "write --set key=value",
    "--checkpoint-dir": "write penstock run FILE --state DIR",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors name the nearest flag."""

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the command line. An unknown flag is reported first, before anything that is missing."""
        # a word behind a flag that takes a value is that value, even if it begins with --
        takes_value = self.valued_flags()
        known = {flag for action in self._actions for flag in action.option_strings}
        before = ""
        # argparse names what is missing before what is unknown: `penstock --chekc` would ask for FILE
        for word in words:
            # everything behind it is a value
            if word == "--":
                break
            flag = word.split("=")[0]
            if flag.startswith("--") and flag not in known and before not in takes_value:
                self.error(f"unrecognized arguments: {flag}")
            before = word
        # argparse drops a -- when options are between files
        if "--" in words:
            return self.parse_args(words)
        return self.parse_intermixed_args(words)

    def actions(self) -> list[argparse.Action]:
        """Return the flags with their actions."""
        return [action for action in self._actions if action.option_strings]

    def valued_flags(self) -> set[str]:
        """Return the flags whose value is the next word."""
        return {flag for action in self._actions if action.nargs is None for flag in action.option_strings}

    def refuse_command(self, words: Sequence[str]) -> None:
        """Exit with an error when the first word is no URL but resembles a command, and name that command."""
        # only when something is wrong: --help imports nothing but the standard library
        from penstock.catalog.name_suggestions import nearest

        meant = (
            nearest(words[0], COMMANDS)
            if len(words) > 1 and not words[0].startswith("-") and "://" not in words[0]
            else None
        )
        if meant is not None:
            sys.stderr.write(
                f'error[CLI-6100]: there is no command {words[0]}\nhint: did you mean "{meant}"?\n'
            )
            sys.exit(EXIT_USAGE)

    def error(self, message: str) -> NoReturn:
        from penstock.catalog.name_suggestions import did_you_mean  # only when something is wrong

        hint = None
        # argparse has only a sentence: its words tell the kinds apart
        if message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split()[0].split("=")[0]
            known = [flag for action in self._actions for flag in action.option_strings]
            message, hint = f"unknown argument {word}", _FLAG_HINTS.get(word) or did_you_mean(word, known)
            if not word.startswith("-"):
                hint = 'a statement is quoted: penstock -c "SELECT 1"'
        # argument --format: invalid choice: 'cvs' (choose from ..)
        elif "invalid choice: " in message:
            word = message.split("invalid choice: ")[1].split(" ")[0].strip("'")
            flag = message.removeprefix("argument ").split(":")[0]
            choices = next(
                action.choices
                for action in self._actions
                if flag in (*action.option_strings, action.metavar) and action.choices
            )
            what = f"{flag} cannot be {word}" if flag.startswith("-") else f"there is no {self.prog} {word}"
            message, hint = what, did_you_mean(word, list(choices), others=True)
        elif message.startswith("argument "):
            message = message.removeprefix("argument ")
            if message == "-c: expected one argument":
                hint = 'write penstock -c "SELECT 1"'
        sys.stderr.write(
            f"error[CLI-6100]: {message}\nhint: {hint or f'{self.prog} --help shows what there is'}\n"
        )
        sys.exit(EXIT_USAGE)
