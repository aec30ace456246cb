"""Mapped: the base of state classes whose large arrays can be spilled to memory-mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from penstock.engine.storage.spill_files import SpillFiles, pages_of

LEAST_BYTES = 1 << 20
"""Smaller arrays stay in memory: a file and its mapping would cost more than they free."""


class Mapped:
    """``MAPPED`` names the arrays a class adds. Once one is in a file, the array it grows into is too
    (``spill_files.zeros_beside``).
    """

    MAPPED: ClassVar[tuple[str, ...]] = ()

    def _in_memory(self) -> Iterator[tuple[str, np.ndarray]]:
        # Each class of the hierarchy names only its own arrays.
        for owner in type(self).__mro__:
            for name in vars(owner).get("MAPPED", ()):
                array: np.ndarray = getattr(self, name)
                # Already in a file: not counted again.
                if array.nbytes >= LEAST_BYTES and pages_of(array) is None:
                    yield name, array

    def spillable_bytes(self) -> int:
        """Return the bytes of the large arrays in memory."""
        return sum(array.nbytes for _, array in self._in_memory())

    def spill(self, files: SpillFiles) -> None:
        """Move them into mapped files."""
        for name, array in list(self._in_memory()):
            setattr(self, name, files.copied(array))
