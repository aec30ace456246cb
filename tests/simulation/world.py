"""The world of a simulation: one thread, one seed, nodes with clocks of their own, and what is ready to
happen, of which chance picks the next.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable
from random import Random

KINDS = ("master", "task", "io", "wire", "plane")


class Died(BaseException):
    """The node that was at work is no more; what it was doing ends here."""


class NodeClock:
    """A node's clocks: they run a little too fast or slow, its wall clock may jump."""

    def __init__(self, world: World, rate: float, offset_ms: float) -> None:
        self._world = world
        self.rate = rate
        self._offset_ms = offset_ms
        self.jumped_ms = 0.0

    def monotonic_ms(self) -> float:
        return self._world.now_ms * self.rate + self._offset_ms

    def wall_ms(self) -> int:
        return max(0, int(self._world.now_ms * self.rate + self.jumped_ms) + 1_000_000_000)


class Node:
    """A process: everything in it happens while it is alive and not stopped."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.stopped = False
        self.clock = NodeClock(
            world, 1.0 + world.drift * (world.random.random() - 0.5), 1_000.0 * world.random.random()
        )
        self._missed: list[Callable[[], None]] = []

    def runnable(self, kind: str, name: str, act: Callable[[], str]) -> Runnable:
        """Return something this node can do once it is woken; ``act`` returns what came of it."""
        return Runnable(self, KINDS.index(kind), f"{self.name} {name}", act)

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        """Call after so many milliseconds of this node's clock."""
        self.world.at(self.world.now_ms + max(0.0, delay_ms) / self.clock.rate, self, call)

    def happens(self, call: Callable[[], None]) -> None:
        """Let something happen to the node: now, or when it goes on."""
        if self.alive and self.stopped:
            self._missed.append(call)
        elif self.alive:
            call()

    def stop(self) -> None:
        """Stand still, as at SIGSTOP."""
        self.stopped = True

    def go_on(self) -> None:
        """Go on, with all that was missed."""
        self.stopped = False
        missed, self._missed = self._missed, []
        for call in missed:
            self.world.at(self.world.now_ms, self, call)


class Runnable:
    """Something a node can do; in the queue of its kind at most once."""

    __slots__ = ("act", "kind", "name", "node", "queued")

    def __init__(self, node: Node, kind: int, name: str, act: Callable[[], str]) -> None:
        self.node = node
        self.kind = kind
        self.name = name
        self.act = act
        self.queued = False


class World:
    """Time, chance and what is ready. ``trace`` is a digest of every decision and what came of it; ``log``
    gets the lines as well if it is there.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self._chance = random.random
        self.now_ms = 1_000.0
        self.steps = 0
        self.drift = random.choice([0.0, 0.01, 0.3])
        self.log: Callable[[str], None] | None = None
        self._trace = hashlib.blake2b(digest_size=16)
        self._ready: list[list[Runnable]] = [[] for _ in KINDS]
        self._timers: list[tuple[float, int, Node | None, Callable[[], None]]] = []
        self._numbers = itertools.count()
        weights = [
            random.choice([1, 3, 10]),
            random.choice([3, 10, 30]),
            random.choice([1, 3, 10]),
            random.choice([1, 3, 10]),
            3,
        ]
        self._queues = list(zip(self._ready, weights, strict=True))
        self._clock_rate = random.choice([0.02, 0.05, 0.2])

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    def note(self, line: str) -> None:
        """Write down a decision."""
        self._trace.update(line.encode())
        if self.log is not None:
            self.log(f"{self.steps:6} {self.now_ms:10.2f} {line}")

    def wake(self, runnable: Runnable) -> None:
        """Let it happen some time."""
        if not runnable.queued:
            runnable.queued = True
            self._ready[runnable.kind].append(runnable)

    def at(self, when_ms: float, node: Node | None, call: Callable[[], None]) -> None:
        """Call at a time of the world, if the node is there then (``None``: whatever else is)."""
        heapq.heappush(self._timers, (when_ms, next(self._numbers), node, call))

    def calm(self) -> None:
        """Nobody starves from now on."""
        self._queues = list(zip(self._ready, [3, 10, 3, 5, 3], strict=True))
        self._clock_rate = 0.02

    def step(self) -> bool:
        """Let one thing happen; False when nothing ever will again."""
        self.steps += 1
        if self._chance() < self._clock_rate:
            self._pass_time(5.0 * self.random.random() ** 3)
        runnable = self._pick()
        if runnable is None:
            if not self._timers:
                return False
            self._pass_time(max(0.0, self._timers[0][0] - self.now_ms))
            return True
        runnable.queued = False
        node = runnable.node
        if node.stopped:
            node.happens(lambda: self.wake(runnable))
        elif node.alive:
            try:
                outcome = runnable.act()
            except Died:
                outcome = "died"
            self.note(f"{runnable.name} {outcome}")
        return True

    def _pick(self) -> Runnable | None:
        total, waiting = 0, []
        for ready, weight in self._queues:
            if ready:
                total += weight
                waiting.append((total, ready))
        if not total:
            return None
        drawn = self._chance() * total
        ready = next(queue for upto, queue in waiting if drawn < upto)
        if len(ready) == 1:
            return ready.pop()
        place = int(self._chance() * len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return ready.pop()

    def _pass_time(self, by_ms: float) -> None:
        self.now_ms += by_ms
        while self._timers and self._timers[0][0] <= self.now_ms:
            _, _, node, call = heapq.heappop(self._timers)
            try:
                if node is None:
                    call()
                else:
                    node.happens(call)
            except Died:
                self.note("died")
