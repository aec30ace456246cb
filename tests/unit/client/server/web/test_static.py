"""The files of the page: they name no other server, and nothing that would run a text as HTML."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from penstock.client.server.web.application import STATIC

ROOT = Path(__file__).resolve().parents[5]
# a namespace and the home of a licence: names, and no requests
NAMES = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}


def files() -> list[Path]:
    return [path for path in STATIC.rglob("*") if path.is_file()]


def own_files() -> list[Path]:
    return [path for path in files() if path.parent == STATIC]


def test_there_are_files() -> None:
    assert {"index.html", "app.js", "graph.js", "style.css"} <= {path.name for path in own_files()}
    assert len(own_files()) > 8


def test_no_file_names_another_server() -> None:
    for path in files():
        if path.suffix in (".js", ".css", ".html", ".svg"):
            text = path.read_text(encoding="utf-8")
            named = set(re.findall(r"(?:https?|wss?)://[^\s\"'`)>]+", text)) - NAMES
            assert not named, (path.name, named)
            assert not re.search(r"(?:src|href)=[\"']//|url\([\"']?//|@import|sourceMappingURL", text), (
                path.name
            )


def test_no_text_becomes_html() -> None:
    markup = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    )
    for path in own_files():
        assert not markup.search(path.read_text(encoding="utf-8")), path.name


def test_the_page_has_no_code_and_no_style_of_its_own() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|<script(?![^>]* src=)|\bon\w+=", page)
    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', page):
        assert (STATIC / name).is_file(), name


def test_a_wheel_has_the_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["penstock.client.server.web"]
    packed = {path for pattern in patterns for path in STATIC.parent.glob(pattern) if path.is_file()}
    assert packed == set(files())


def test_vendored_libraries_have_their_licences() -> None:
    vendor = STATIC / "vendor"
    assert "MIT" in (vendor / "uPlot.LICENSE").read_text(encoding="utf-8")
    assert "Permission is hereby granted" in (vendor / "dagre.LICENSE").read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_contrast(scheme: int) -> None:
    """WCAG AA: 4.5 to 1 for texts, 3 to 1 for bars and borders that mean something."""
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    grounds = [(text, ground) for text in ("ink", "soft", "accent") for ground in ("ground", "panel", "sunk")]
    washes = [(name, f"{name}-wash") for name in ("good", "warn", "bad", "accent")]
    for text, ground in [
        *grounds,
        *washes,
        ("ink", "warn-wash"),
        ("ink", "bad-wash"),
        ("accent-ink", "accent"),
    ]:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for mark in ("busy", "pressed"):
        assert contrast(colours[mark], colours["panel"]) >= 3, mark
