"""The settings of one session of a shared engine: what the session sets, over those of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.catalog.connectors.spark import SETTING_PREFIX
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.settings import Settings

if TYPE_CHECKING:
    from penstock.client.execution.engine_state import EngineState

# what the engine reads once for all sessions
ENGINE_SETTINGS = frozenset({"metrics.prometheus.port", "python.modules", "execution.checkpointing.dir"})


def is_engine_setting(key: str) -> bool:
    """Return whether the engine reads a setting once for all its sessions."""
    return key in ENGINE_SETTINGS or key.startswith(SETTING_PREFIX)


def own_settings(settings: Settings) -> dict[str, str]:
    """Return what a session of a shared engine has set itself, nothing for another session."""
    return settings.own() if isinstance(settings, SessionSettings) else {}


class SessionSettings(Settings):
    """Settings that RESET returns to those of the engine, whose own settings cannot be changed."""

    def __init__(self, engine: EngineState, values: Mapping[str, str]) -> None:
        self._engine_settings = engine.settings
        super().__init__()
        self.reset()
        for key, text in values.items():
            self.set(key, text)

    def set(self, key: str, text: str, span: Span | None = None, *, key_span: Span | None = None) -> None:
        """Set a key. CLI-6206 for a setting of the engine, besides what ``Settings.set`` raises."""
        declared = self.declaration(key, key_span or span).key
        if is_engine_setting(declared):
            raise PenstockError(
                "CLI-6206",
                f"{declared} is a setting of the server, not of a session",
                span=key_span or span,
                hint=f"who starts the server sets it: penstock serve --set {declared}=..",
                sqlstate="55P02",
            )
        super().set(key, text, span, key_span=key_span)
        self._own.add(declared)

    def reset(self, key: str | None = None, span: Span | None = None) -> None:
        """Return one key, or all, to the value of the engine."""
        super().reset(key, span)
        if key is None:
            self._own: set[str] = set()
            shared = self._engine_settings
            self._texts.update({key: text for key, text in shared.items() if shared.is_set(key)})
            return
        declared = self.declaration(key, span).key
        self._own.discard(declared)
        if self._engine_settings.is_set(declared):
            self._texts[declared] = self._engine_settings.text(declared)

    def own(self) -> dict[str, str]:
        """Return what the session itself has set."""
        return {key: self._texts[key] for key in sorted(self._own)}
