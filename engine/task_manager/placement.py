"""Placement: which subtasks of a job run in this process, and how channels reach those that do not."""

from __future__ import annotations

from typing import Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.exchange.channel import ConsumerChannel, ProducerChannel, Wakeup


class Placement(Protocol):
    """Where subtasks run; ``key`` names a channel, the same in every process."""

    def here(self, subtask: int) -> bool:
        """Whether tasks of a subtask number run in this process."""

    def producer(self, key: str, target: int, wake: Wakeup) -> ProducerChannel:
        """Return what a task of this process puts into for subtask ``target`` elsewhere."""

    def consumer(self, key: str, source: int, capacity: int, wake: Wakeup) -> ConsumerChannel:
        """Return what a task of this process takes from that subtask ``source`` elsewhere puts into."""


class AllHere:
    """One process runs every subtask."""

    def here(self, subtask: int) -> bool:
        return True

    def producer(self, key: str, target: int, wake: Wakeup) -> ProducerChannel:
        raise AssertionError(key)

    def consumer(self, key: str, source: int, capacity: int, wake: Wakeup) -> ConsumerChannel:
        raise AssertionError(key)


@dataclass(frozen=True)
class ChannelEnds:
    """The two ends of a channel, each where its task is of this process."""

    producer: ProducerChannel | None
    consumer: ConsumerChannel | None
