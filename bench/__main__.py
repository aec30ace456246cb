"""``python -m bench [throughput|deployment|hosted|nexmark|match|startup|chain|kernels]``: all of them
without a word.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import chain, data, deployment, kernels, nexmark, throughput
from bench.operators import match
from bench.spark import hosted
from bench.spark import startup as spark_startup
from bench.start import startup


def main() -> None:
    """Print the benches that were asked for."""
    names = ["throughput", "deployment", "hosted", "nexmark", "match", "chain", "kernels", "startup"]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("which", nargs="*", choices=[*names, []], help="which benches (all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each figure (3)")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where the events are kept (out/bench)"
    )
    parser.add_argument(
        "--events", type=int, default=2_000_000, help="how many events Nexmark runs over (2 million)"
    )
    parser.add_argument("--queries", default="", help="which Nexmark queries, such as q0,q3 (all)")
    parser.add_argument(
        "--second-slot", action="store_true", help="Nexmark at two slots beside one, without DuckDB"
    )
    arguments = parser.parse_args()
    which = arguments.which or names
    if "throughput" in which:
        throughput.report(data.events(arguments.folder), data.ROWS, arguments.runs)
    if "deployment" in which:
        deployment.report(data.events(arguments.folder), data.ROWS, arguments.runs)
    if "hosted" in which:
        hosted.report(data.events(arguments.folder), data.ROWS, arguments.runs)
    if "nexmark" in which:
        wanted = [name for name in arguments.queries.split(",") if name]
        report = nexmark.report_second_slot if arguments.second_slot else nexmark.report
        report(arguments.folder, arguments.events, wanted, arguments.runs)
    if "match" in which:
        match.report(arguments.runs)
    if "chain" in which:
        chain.report()
    if "kernels" in which:
        kernels.report()
    if "startup" in which:
        startup.report(max(5, arguments.runs))
        spark_startup.report(arguments.runs)


if __name__ == "__main__":
    main()
