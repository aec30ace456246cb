"""The card of Kafka: a job from a topic to two topics is killed at each step of its transactions. The broker is
killed, the job is stopped and woken behind its successor, its workers are killed. A stock reader of committed
records looks on.

Between deaths the parallelism goes from 3 to 1 to 2. Pass: each number is in the topic once, none that was
read is ever gone, and the last record of each key is its count.
"""

from __future__ import annotations

import argparse
import signal
from itertools import cycle
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.kafka_faults import BROKER, WHOLE, WORKER, ZOMBIE, KafkaFaults
from tests.fault_injection.kafka_job import JOB, CopiedTopics
from tests.fault_injection.verdict import Verdict
from tests.harness.kafka_broker import KafkaTopics, new_broker
from tests.harness.kafka_proxy import BEHIND, KafkaProxy

STEPS = ("S1", "S3", "C8", "C11", "S4", "K1", "K2", "K3", "S6", "S7", "R2", "R2b")
RESTORING = ("R2", "R2b")
FAULTS = (BROKER, ZOMBIE, WORKER)
PARALLELISM = (3, 1, 2)
CONTROLS = {
    "hasty": "tests.fault_injection.hasty_commits",
    "unfenced": "tests.fault_injection.unfenced_kafka",
    "careless": "penstock.repl.cli",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=3_000, help="rows a second of each subtask")
    parser.add_argument("--steps", nargs="+", default=[*STEPS, *FAULTS], choices=[*STEPS, *FAULTS])
    parser.add_argument("--kills", type=int, default=0, help="so many in all, at random steps (0: each once)")
    parser.add_argument("--ckpt", default="100 ms")
    parser.add_argument(
        "--control",
        choices=tuple(CONTROLS),
        help="a negative control. hasty: commit what is not in a complete checkpoint; unfenced: no process fences "
        "another off; careless: the broker dies with what is not on its disk",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    random = Random(arguments.seed)
    steps = list(arguments.steps)
    if arguments.kills:
        steps = [random.choice(steps) for _ in range(arguments.kills)]
    broker = new_broker(BEHIND)
    proxy = KafkaProxy(broker)
    topics = CopiedTopics(KafkaTopics(broker.bootstrap), arguments.rows, bootstrap=proxy.bootstrap)
    settings = ("restart-strategy.type=fixed-delay", "restart-strategy.attempts=100000")
    job = JobProcess(arguments.directory, topics.script(arguments.rate), JOB, arguments.ckpt, settings)
    if arguments.control:
        job.module = CONTROLS[arguments.control]
    faults = KafkaFaults(broker, proxy, topics, verdict, random, arguments.control == "careless")
    parallelism, read = cycle(PARALLELISM), []
    try:
        for step in [*steps, None]:
            if step in FAULTS:
                code = faults.run(step, job, next(parallelism))
            else:
                # the first checkpoint of a process may be one without rows
                hit = 1 if step in RESTORING else random.randint(2, 4)
                job.failpoints = f"{step}=kill@{hit}" if step else ""
                job.start(parallelism=next(parallelism))
                code = job.wait()
            if step is not None and code == -signal.SIGKILL:
                verdict.coverage[f"{step} kill"] += 1
                verdict.coverage["kills"] += 1
                verdict.faults.append(f"{step} kill")
            read.append(topics.read())
            if not verdict.check(
                code in (0, -signal.SIGKILL), f"exit code {code} before {step}\n{job.told[-1500:]}"
            ):
                break
        topics.check_all()
    finally:
        verdict.wrong += topics.wrong[:5]
        job.reap()
        proxy.close()
        broker.kill()
    # a job that comes to its end before its step is no kill: too few rows make the run invalid
    verdict.least = {f"{step} kill": 1 for step in set(steps)} | {"kills": arguments.kills}
    if BROKER in steps:
        # a broker that forgets what it had on its disk proves nothing about the job
        verdict.least[WHOLE] = steps.count(BROKER)
    if ZOMBIE in steps:
        verdict.least["zombies that the broker fenced off"] = 1
    verdict.figures |= {"rows": arguments.rows, "kills": verdict.coverage["kills"], "read after each": read}
