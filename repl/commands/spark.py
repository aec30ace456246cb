"""``penstock spark status | stop``: the Sparks that are kept alive between command lines."""

from __future__ import annotations

import argparse
import json
import sys

from penstock.engine.bounded.spark.keep_alive import daemon_states, stop_daemons
from penstock.repl.launch.parser import EXIT_OK


def run_spark(arguments: argparse.Namespace) -> int:
    """Print the Sparks kept alive for this user, or end them; nothing is started."""
    if arguments.action == "stop":
        count = stop_daemons()
        sys.stdout.write(
            f"ended {count} Spark{'' if count == 1 else 's'} kept alive\n"
            if count
            else "no Spark is kept alive\n"
        )
        return EXIT_OK
    # Whoever has the token may use that Spark: it is not printed, nor in the JSON.
    states = [{name: value for name, value in state.items() if name != "token"} for state in daemon_states()]
    if arguments.json:
        sys.stdout.write(json.dumps(states, indent=2) + "\n")
        return EXIT_OK
    for state in states:
        used = (
            f"used by {state['leases']}"
            if state["leases"]
            else f"unused for {state['idle_s']} s of {state['keep_alive_s']} s"
        )
        sys.stdout.write(f"{state['url']}  Java's process {state['java_pid']}, {used}\n")
    if not states:
        sys.stdout.write("no Spark is kept alive\n")
    return EXIT_OK
