"""``python -m penstock``, and ``spark-submit .../penstock/__main__.py``, are the command line."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# run by its path: a program's own ``client.py`` would be hidden by the folder beside this file
if Path(sys.path[0]) == _HERE:
    sys.path[0] = str(_HERE.parent)

from penstock.repl.cli import main  # noqa: E402 - behind the line above

if __name__ == "__main__":
    raise SystemExit(main())
