"""Without Spark the answer is a sentence that says what to install or set, not an import error."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded import spark_errors, spark_launcher


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(spark_errors, "find_spec", lambda name: None)
    monkeypatch.setattr(spark_launcher, "find_spec", lambda name: None)
    assert spark_errors.spark_failures() == ()
    with pytest.raises(PenstockError) as caught:
        spark_launcher.spark_home()
    assert caught.value.code == "BND-5007"
    assert "penstock[spark]" in str(caught.value.hint)
    assert "bounded.backend" in str(caught.value.hint)
