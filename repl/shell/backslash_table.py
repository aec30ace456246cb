"""The shell's own commands: names, arguments, one sentence each. What they do is in
``penstock.repl.shell.backslash_commands``.
"""

from __future__ import annotations

# Name, arguments, help: in the order in which \? lists them.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    (r"\?", "", "list these commands"),
    (r"\h", "[TOPIC]", "syntax of a clause, with an example"),
    (r"\d", "[NAME]", "tables and views, or the columns of one"),
    (r"\dt", "[PATTERN]", "tables"),
    (r"\dv", "[PATTERN]", "views"),
    (r"\df", "[PATTERN]", "functions"),
    (r"\dc", "[NAME]", "connectors and their options"),
    (r"\dj", "[JOB]", "jobs that run, or the figures of one"),
    (r"\dj+", "[PATTERN]", "all jobs, ended ones too"),
    (r"\x", "[on|off|auto]", "one field a line"),
    (r"\t", "[on|off]", "rows only, no heading"),
    (r"\timing", "[on|off]", "say how long a statement took"),
    (
        r"\mode",
        "[auto|table|changelog|FORMAT]",
        "how results are shown: final rows, changes, or a format such as csv",
    ),
    (r"\pset", "null TEXT | max_rows N", "how NULL is shown, how many rows at most"),
    (r"\set", "[KEY VALUE]", "settings, and where each value came from"),
    (r"\i", "FILE", "run a script"),
    (r"\o", "[FILE]", "print rows into a file; alone: on the screen again"),
    (r"\e", "[FILE]", "edit the last statement, or a file, in $EDITOR"),
    (r"\watch", "[SECONDS]", "run the last statement again and again (bounded queries)"),
    (r"\errverbose", "", "the last error with all it knows"),
    (r"\conninfo", "", "where this shell's statements run, and who computes bounded queries"),
    (r"\c", "URL", "connect elsewhere"),
    (r"\q", "", "leave"),
)
# Accepted, but neither listed nor completed.
ALIASES = {r"\help": r"\?", r"\ir": r"\i", r"\quit": r"\q", r"\exit": r"\q"}
COMMAND_HELP = tuple((name, help) for name, _, help in COMMANDS)
