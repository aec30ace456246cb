"""The meta commands: names, arguments, one sentence each. What they do is in the modules beside this one."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.repl.launch.script_parts import MetaCommand


@dataclass(frozen=True)
class CommandHelp:
    """One meta command as ``\\?`` lists it."""

    name: str
    arguments: str
    help: str


# Titles and order are those of \? and docs/SHELL.md.
SECTIONS: dict[str, tuple[CommandHelp, ...]] = {
    title: tuple(CommandHelp(*facts) for facts in commands)
    for title, commands in {
        "Lists": (
            (r"\d", "[NAME]", "tables and views, or the columns of one"),
            (r"\d+", "[NAME]", "the same with connector, options, watermark, and size where it is known"),
            (r"\dt", "[PATTERN]", "tables"),
            (r"\dv", "[PATTERN]", "views"),
            (r"\df", "[PATTERN]", "functions: how each is called, and one sentence"),
            (r"\dc", "[NAME]", "connectors and their options"),
            (r"\dj", "[JOB]", "jobs that run, or the figures of one"),
            (r"\dj+", "[PATTERN]", "all jobs, ended ones too"),
        ),
        "Statements": (
            (
                r"\g",
                "[FILE or |COMMAND]",
                "run the statement before it, or the last one again; rows go to a file or command",
            ),
            (r"\gx", "[FILE or |COMMAND]", "the same, one field a line"),
            (r"\watch", "[SECONDS] [c=COUNT]", "run the statement again and again (bounded queries)"),
            (r"\i", "FILE", "run a script"),
            (r"\ir", "FILE", "run a script; the path is relative to the script that has the command"),
            (r"\e", "[FILE]", "edit the last statement, or a file, in $EDITOR"),
            (r"\n", "[NAME [VALUE ..]]", "run a named query, its ? being the values; alone: list them"),
            (r"\ns", "NAME [QUERY]", "save the query, or the last statement, under a name"),
            (r"\nd", "NAME", "drop a named query"),
        ),
        "Rows": (
            (r"\last", "", "the rows of the last result again, all of them"),
            (
                r"\tail",
                "[TABLE or JOB] [N]",
                "the last rows of the last result; or of a table or a job's output, and what comes",
            ),
            (r"\why", "[N]", "the input rows that made row N of the last result, or its last row"),
            (r"\o", "[FILE or |COMMAND]", "print rows into a file or command; alone: on the screen again"),
            (
                r"\mode",
                "[auto|table|changelog|FORMAT]",
                "how results are shown: final rows, changes, or a format such as csv",
            ),
            (r"\x", "[on|off|auto]", "one field a line"),
            (r"\t", "[on|off]", "rows only, no heading"),
            (r"\pset", "[null TEXT | max_rows N | pager on|off]", "the sign of NULL, most rows, pages"),
            (r"\timing", "[on|off]", "say how long a statement took"),
        ),
        "Session": (
            (r"\?", "", "list these commands"),
            (r"\h", "[TOPIC]", "syntax of a clause, with an example"),
            (r"\set", "[KEY VALUE]", "settings, and where each value came from"),
            (r"\errverbose", "", "the last error with all it knows"),
            (r"\conninfo", "", "where statements run, and who computes bounded queries"),
            (r"\c", "URL", "say how to open a shell at a server"),
            (r"\q", "", "leave the shell or the script"),
        ),
    }.items()
}
COMMANDS = tuple(command for commands in SECTIONS.values() for command in commands)
# Accepted, but neither listed nor completed.
ALIASES = {r"\help": r"\?", r"\quit": r"\q", r"\exit": r"\q"}
COMMAND_HELP = tuple((command.name, command.help) for command in COMMANDS)


def check_command(command: MetaCommand) -> str:
    """Return the name of a command that exists; CLI-6140 with the nearest name for any other."""
    name = ALIASES.get(command.name, command.name)
    known = [one.name for one in COMMANDS]
    if name not in known:
        hint = did_you_mean(name, known) or r"\? lists the commands"
        raise command.locate(PenstockError("CLI-6140", f"there is no command {name}", hint=hint))
    return name
