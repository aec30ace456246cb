"""The card of two-phase commit into databases: writers crash between steps, replies are lost, parallelism changes; a reader looks each time."""

from __future__ import annotations

import argparse

from tests.databases.places import KINDS, Place
from tests.databases.two_phase import chaos
from tests.rel.verdict import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=100_000, help="about how many, in each database")
    parser.add_argument("--checkpoints", type=int, default=100, help="in how many checkpoints")
    parser.add_argument("--into", default=",".join(KINDS), help=f"which databases, of {', '.join(KINDS)}")
    parser.add_argument("--hasty", action="store_true", help="the negative control: commit what is not in a complete checkpoint")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    verdict.least = {f"{step}, complete": 1 for step in ("before commit", "lost reply", "S5")} | {"S2, incomplete": 1}
    for kind in arguments.into.split(","):
        directory = arguments.directory / kind
        directory.mkdir()
        place = Place(kind, directory)
        place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
        most = max(1, 2 * arguments.rows // (3 * arguments.checkpoints))
        hit, written = chaos(place, arguments.seed, hasty=arguments.hasty, checkpoints=arguments.checkpoints, most=most)
        rows = [row[0] for row in place.ask("SELECT k FROM out ORDER BY k")]
        lost, doubled = written - len(set(rows)), len(rows) - len(set(rows))
        verdict.check(rows == list(range(written)), f"{kind}: {lost} lost, {doubled} doubled of {written}")
        verdict.check(place.ask("SELECT COUNT(*) FROM penstock_staged") == [(0,)], f"{kind}: staged rows are left")
        verdict.coverage += hit
        verdict.faults += [f"{kind}: {step}" for step in hit.elements()]
        verdict.figures[kind] = {"rows": written, "crashes": sum(hit.values())}
