"""Faults of a job between topics beside its own death: the broker killed, the job stopped and woken behind its
successor, a worker process killed. Each returns the exit code of the last process, killed once it has got on.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.kafka_job import CopiedTopics
from tests.fault_injection.killing import workers_of
from tests.fault_injection.verdict import Verdict
from tests.harness.kafka_broker import KafkaBroker
from tests.harness.kafka_proxy import KafkaProxy
from tests.harness.patience import await_that

BROKER, ZOMBIE, WORKER = "broker", "zombie", "worker"
# What the kills are counted by whose broker has after its restart all that it had on its disk.
WHOLE = "brokers that came back whole"
# An open transaction in which a process waits, so that the fault comes in it.
OPEN = ("K1", "K2")


class KafkaFaults:
    """``careless``: the broker is killed with what it has not written to its disk, a negative control."""

    def __init__(
        self,
        broker: KafkaBroker,
        proxy: KafkaProxy,
        topics: CopiedTopics,
        verdict: Verdict,
        random: Random,
        careless: bool,
    ) -> None:
        self._broker, self._proxy, self._topics = broker, proxy, topics
        self._verdict, self._random = verdict, random
        self._careless = careless

    def run(self, name: str, job: JobProcess, parallelism: int) -> int:
        """Start the job, let the fault come, and end the job."""
        # in two of three the fault comes while a transaction is open
        point = self._random.choice((*OPEN, ""))
        if name == WORKER:
            return self._without_worker(job, max(2, parallelism))
        # a zombie has begun all its sinks: else it fences its successor off when it wakes, and both end
        hit = self._random.randint(13, 18) if name == ZOMBIE else self._random.randint(2, 4)
        job.failpoints = f"{point}=delay(2 s)@{hit}" if point else ""
        module, settings = job.module, job.settings
        if name == ZOMBIE:
            # else its lock would tell it first; and an attempt that it begins anew fences its successor off
            job.module = "tests.fault_injection.unaware" if module == JobProcess.module else module
            job.settings = ("restart-strategy.type=none",)
        job.start(parallelism=parallelism)
        job.module, job.settings = module, settings
        self._await(job, point)
        if name == BROKER:
            return self._without_broker(job)
        return self._with_zombie(job, parallelism)

    def _await(self, job: JobProcess, point: str) -> None:
        if point:
            job.await_that(lambda: f"failpoint {point}" in job.told or job.finished)
            self._verdict.coverage["faults in an open transaction"] += 1
        else:
            newest = job.newest
            job.await_that(lambda: job.newest > newest + 3 or job.finished)
            time.sleep(self._random.random() * 0.2)

    def _without_broker(self, job: JobProcess) -> int:
        """Kill the broker with SIGKILL and start it on its data. From a moment on the job gets no answers; what
        the broker has answered before is on its disk when it dies.
        """
        kept = None if self._careless else self._held()
        self._broker.kill()
        self._proxy.drop()
        self._broker.start()
        if kept is not None:
            # what a reader saw before and does not see now is the broker's loss, not the job's
            self._verdict.coverage[WHOLE] += kept <= self._topics.committed().keys()
        return self._gets_on(job)

    def _held(self) -> set[int]:
        """Keep the broker's answers back, wait for its disk, and return the numbers that are committed on it."""
        self._proxy.hold()
        kept = set(self._topics.committed())
        self._broker.await_disk()
        return kept

    def _with_zombie(self, zombie: JobProcess, parallelism: int) -> int:
        """Stop the job, let a successor commit, and wake the stopped one: it must end without a row."""
        zombie.signal(signal.SIGSTOP)
        successor = replace(zombie, failpoints="", process=None, runs=zombie.runs + 100)
        try:
            successor.start("recover", "--take-over", parallelism=parallelism)
            self._await_newer(successor)
            zombie.signal(signal.SIGCONT)
            code = zombie.wait()
            # one that was stopped for longer than its calls may take ends by their time-outs
            self._verdict.coverage["zombies that the broker fenced off"] += "STA-3504" in zombie.told
            ended = code not in (0, -signal.SIGKILL) or zombie.finished
            self._verdict.check(ended, f"the zombie ended with {code}:\n{zombie.told[-800:]}")
            return self._gets_on(successor)
        finally:
            zombie.reap()
            successor.reap()

    def _without_worker(self, job: JobProcess, parallelism: int) -> int:
        job.failpoints = ""
        settings = job.settings
        job.settings = (*settings, "deployment=processes")
        job.start(parallelism=parallelism)
        job.settings = settings
        self._await(job, "")
        if workers := workers_of(job):
            os.kill(self._random.choice(workers), signal.SIGKILL)
        return self._gets_on(job)

    @staticmethod
    def _await_newer(job: JobProcess) -> None:
        newest = job.newest
        await_that(lambda: job.newest > newest + 3 or not job.alive, "a checkpoint after the fault")

    def _gets_on(self, job: JobProcess) -> int:
        self._await_newer(job)
        # it may have come to its end meanwhile
        if job.alive:
            job.kill()
        return job.wait()
