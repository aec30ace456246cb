"""``penstock explain-error CODE``: what an error means, and what to do."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from penstock.catalog.error_codes.registry import ERROR_CODES, FAMILIES, ErrorCode, error_code
from penstock.catalog.errors import PenstockError
from penstock.repl.launch.parser import EXIT_OK, EXIT_USAGE
from penstock.repl.output.messages import Messages


def run_explain_error(arguments: argparse.Namespace) -> int:
    """Print cause and cure of each code and return the exit code; without codes, a line for each there is.
    An unknown code is reported, and the others are printed.
    """
    found: list[ErrorCode] = []
    worst = EXIT_OK
    for name in arguments.codes:
        try:
            found.append(error_code(name))
        except PenstockError as error:
            Messages(sys.stderr, as_json=arguments.json).error(error)
            worst = EXIT_USAGE
    if arguments.json:
        shown = found if arguments.codes else ERROR_CODES.values()
        sys.stdout.write(json.dumps([asdict(code) for code in shown], indent=2, ensure_ascii=False) + "\n")
    elif arguments.codes:
        sys.stdout.write("\n".join(map(_paragraph, found)))
    else:
        sys.stdout.writelines(f"{code.code}  {code.cause}\n" for code in ERROR_CODES.values())
    return worst


def _paragraph(code: ErrorCode) -> str:
    title = FAMILIES[code.code[:3]]
    return f"{code.code} ({title})\ncause: {code.cause}\ncure:  {code.cure}\n"
