"""Options of the connector of sources and sinks that are written in Python."""

from __future__ import annotations

from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.filesystem import CHANGELOG_MODES
from penstock.catalog.connectors.option import Option, OptionKind

# 'option.url' = '..' is options["url"] of the Python code
USER_OPTION = "option."

PYTHON_OPTIONS = (
    Option(
        "name",
        required=True,
        help="what reads or writes it: module.object, or the name of one that the program registered",
    ),
    Option(f"{USER_OPTION}*", help="a text for the Python code, by this key in its options"),
    Option("scan.bounded", OptionKind.BOOL, False, "its splits end: a stream that is finite"),
    Option(
        "changelog.mode",
        OptionKind.ENUM,
        "append",
        "what a sink receives: new rows; by PRIMARY KEY the last change of each key, with a first column "
        "__deleted; all changes, with a first column op",
        CHANGELOG_MODES,
    ),
)


def _boundedness(table: TableOptions) -> Boundedness:
    return Boundedness.REPLAY if table.option("scan.bounded") else Boundedness.UNBOUNDED


PYTHON = Connector(
    "python",
    "a source or a sink written in Python",
    PYTHON_OPTIONS,
    source=True,
    sink=True,
    replayable=True,
    # The target stores an epoch with its rows; penstock commits each epoch once.
    exactly_once=True,
    boundedness=_boundedness,
)
