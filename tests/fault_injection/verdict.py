"""What a card found: passed, failed, or invalid because too little of what it is about has happened."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXIT_CODES = {"passed": 0, "failed": 1, "invalid": 2}


@dataclass
class Verdict:
    """Filled by a card. ``least``: how often each thing counted in ``coverage`` must have happened for the
    run to mean anything.
    """

    card: str
    seed: int
    faults: list[str] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)
    least: dict[str, int] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: bool, sentence: str) -> bool:
        """Note what does not hold; return whether it does."""
        if not holds:
            self.wrong.append(sentence)
        return holds

    @property
    def uncovered(self) -> list[str]:
        """What has not happened often enough."""
        return [
            f"{name}: {self.coverage[name]} of at least {least}"
            for name, least in self.least.items()
            if self.coverage[name] < least
        ]

    @property
    def word(self) -> str:
        """``failed`` when anything was wrong, ``invalid`` below the least coverage, else ``passed``."""
        if self.wrong:
            return "failed"
        return "invalid" if self.uncovered else "passed"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 invalid."""
        return EXIT_CODES[self.word]

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        fields = {
            "card": self.card,
            "verdict": self.word,
            "seed": self.seed,
            "wrong": self.wrong,
            "uncovered": self.uncovered,
            "faults": self.faults,
            "coverage": dict(sorted(self.coverage.items())),
            "figures": self.figures,
        }
        path.write_text(json.dumps(fields, indent=1, default=str) + "\n", encoding="utf-8")
