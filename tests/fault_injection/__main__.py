"""``python -m tests.fault_injection <card> --seed S ..``: one experiment with faults, judged by an exact oracle.
``soak``: all of them at length.

Exit code 0: passed, 1: failed, 2: invalid, for too little has happened. ``result.json`` tells all; the last
line printed repeats the run."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.fault_injection.cards import CARDS, Card
from tests.fault_injection.verdict import Verdict


def main(words: Sequence[str]) -> int:
    """Run the card named first, or all of them."""
    if not words or words[0] in ("-h", "--help"):
        say(__doc__ + "\n\n" + "\n".join(f"  {card.name:12} {card.sentence}" for card in CARDS))
        return 0
    if words[0] == "soak":
        return soak(words[1:])
    card = next((card for card in CARDS if card.name == words[0]), None)
    if card is None:
        say(f"there is no card {words[0]}; there are {', '.join(card.name for card in CARDS)}")
        return 2
    return run_card(card, words[1:]).exit_code


def run_card(card: Card, words: Sequence[str]) -> Verdict:
    """Run one card and say what it found."""
    module = import_module(card.module)
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.fault_injection {card.name}", description=card.sentence
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out") / "rel", help="where <card>/result.json goes")
    parser.add_argument("--keep", action="store_true", help="keep the run's directory also when it passed")
    module.add_arguments(parser)
    arguments = parser.parse_args(words)
    results = (arguments.out / card.name).absolute()
    arguments.directory = results / "run"
    shutil.rmtree(arguments.directory, ignore_errors=True)
    arguments.directory.mkdir(parents=True)
    verdict, started = Verdict(card.name, arguments.seed), time.monotonic()
    try:
        module.run(arguments, verdict)
    except Exception as error:  # noqa: BLE001 - whatever ends a card early is its verdict
        verdict.wrong.append(f"{type(error).__name__}: {error}")
        traceback.print_exc()
    verdict.figures["seconds"] = round(time.monotonic() - started, 1)
    verdict.write(results / "result.json")
    if verdict.word == "passed" and not arguments.keep:
        shutil.rmtree(arguments.directory, ignore_errors=True)
    else:
        say(f"what it left: {arguments.directory}")
    report(verdict, words, results / "result.json")
    return verdict


def report(verdict: Verdict, words: Sequence[str], path: Path) -> None:
    """Print the verdict, its figures, and how to run it again."""
    for sentence in verdict.wrong[:20]:
        say(f"WRONG: {sentence}")
    for sentence in verdict.uncovered:
        say(f"too little: {sentence}")
    for name, figure in verdict.figures.items():
        say(f"  {name}: {figure}")
    for name, count in sorted(verdict.coverage.items()):
        say(f"  {count:>8,} {name}")
    say(f"{verdict.card}: {verdict.word} ({path})")
    given = [] if "--seed" in words else ["--seed", str(verdict.seed)]
    say(f"again: python -m tests.fault_injection {verdict.card} {shlex.join([*given, *words])}")


def soak(words: Sequence[str]) -> int:
    """Run all cards at their long settings and print one line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault_injection soak")
    parser.add_argument("--only", nargs="+", metavar="CARD", help="these cards only")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(words)
    verdicts = [
        run_card(c, ["--seed", str(arguments.seed), *c.soak])
        for c in CARDS
        if not arguments.only or c.name in arguments.only
    ]
    say("")
    for verdict in verdicts:
        say(
            f"{verdict.card:12} {verdict.word:8} {len(verdict.faults):>6,} faults {verdict.figures['seconds']:>9,.0f} s"
        )
    return max((verdict.exit_code for verdict in verdicts), default=2)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
