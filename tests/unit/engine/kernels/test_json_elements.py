"""Where the elements of a JSON array are: see also the records of HTTP answers, which are compared with json."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.kernels.json_elements import element_bounds


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        ("[]", []),
        (" [ ] ", []),
        ('[1, "a,]" ,{"k": [2, 3]}]', ["1", '"a,]"', '{"k": [2, 3]}']),
        (r'["\"", "\\"]', [r'"\""', r'"\\"']),
        ("[1", None),
        ("1", None),
        ("[1,,2]", None),
        ("[1]]", None),
    ],
)
def test_bounds(body: str, elements: list[str] | None) -> None:
    data = np.frombuffer(body.encode(), np.uint8)
    starts, ends = np.zeros((2, len(data) // 2 + 1), np.int64)
    count = element_bounds(data, starts, ends)
    found = None if count < 0 else [body[starts[i] : ends[i]] for i in range(count)]
    assert found == elements
