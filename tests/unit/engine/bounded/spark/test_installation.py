"""Without Spark the answer is a sentence that says what to install or set, not an import error."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark import errors, jvm_launcher


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    monkeypatch.setattr(jvm_launcher, "find_spec", lambda name: None)
    assert errors.spark_failures() == ()
    with pytest.raises(PenstockError) as caught:
        jvm_launcher.spark_home()
    assert caught.value.code == "BND-5007"
    assert "penstock[spark]" in str(caught.value.hint)
    assert "bounded.backend" in str(caught.value.hint)
