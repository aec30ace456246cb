"""What operators have in common that put changes together before they give them."""

from __future__ import annotations

from penstock.engine.operator import Operator, Output, Rest, begun
from penstock.engine.thinned_changes import ThinnedChanges


class GivesThinned(Operator):
    """Changes go out thinned, all of them before a barrier and at the end."""

    _changes: ThinnedChanges

    def on_processing_time(self, now_ms: int, out: Output) -> Rest | None:
        return begun(self._changes.give_due(out))

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        for _ in self._changes.give(out):
            """Nothing may be held over a barrier, whether there is room or not."""

    def on_end(self, out: Output) -> Rest | None:
        return begun(self._changes.give(out))
