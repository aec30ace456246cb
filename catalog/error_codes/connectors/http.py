"""Causes and cures of errors: HTTP."""

from __future__ import annotations

HTTP: dict[str, tuple[str, str]] = {
    "DAT-5700": (
        "The packages of the http connector are not installed.",
        "Run: pip install 'penstock[http]'.",
    ),
    "DAT-5701": (
        "A server does not answer.",
        "Start the server, or correct 'url', 'timeout' and 'max-retries'.",
    ),
    "DAT-5702": (
        "A server refuses a request.",
        "Read the status and the answer; correct 'url', or a token in 'headers.Authorization'.",
    ),
    "DAT-5703": (
        "An answer or message is longer than the table allows.",
        "Ask for less at once, or raise 'max-answer-size'.",
    ),
    "DAT-5704": ("A server sends the request to another server.", "Write the new address into 'url'."),
    "DAT-5706": (
        "A server answers, but not what a table of this mode and format reads.",
        "Correct 'url', 'mode' or 'format'; a page to log in needs a token in 'headers.Authorization'.",
    ),
    "DAT-5705": (
        "A job would resume although what a server sent since its checkpoint may be lost.",
        "Begin without the job's state, or set 'http.on-restore' = 'continue'.",
    ),
}
