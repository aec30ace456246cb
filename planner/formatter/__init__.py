"""SQL text in one layout: lexemes with their comments, the layout, and scripts whose meaning stays."""

from __future__ import annotations
