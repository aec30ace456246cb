"""The pause of garbage collection while modules are imported."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from penstock.engine.api.module_loading import collection_paused


@pytest.fixture(autouse=True)
def _nothing_is_frozen() -> Iterator[None]:
    # a run of tests freezes what it has imported
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.enable()
    if frozen:
        gc.freeze()


def _old_objects() -> set[int]:
    return {id(thing) for thing in gc.get_objects(generation=2)}


def test_collection_goes_on_after_a_failed_import() -> None:
    with pytest.raises(ImportError), collection_paused():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_collection_that_is_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_objects_made_while_modules_were_imported_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    with collection_paused():
        monkeypatch.setitem(sys.modules, "a_module_of_this_test", ModuleType("a_module_of_this_test"))
        stays: list[object] = [[]]
    assert id(stays) in _old_objects()
    assert not gc.get_freeze_count()


def test_objects_are_young_where_nothing_was_imported() -> None:
    with collection_paused():
        stays: list[object] = [[]]
    assert id(stays) not in _old_objects()


def test_frozen_objects_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    with collection_paused():
        monkeypatch.setitem(sys.modules, "a_module_of_this_test", ModuleType("a_module_of_this_test"))
    assert gc.get_freeze_count()
    gc.unfreeze()
