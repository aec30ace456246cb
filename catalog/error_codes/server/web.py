"""Causes and cures of errors: the web listener of a server."""

from __future__ import annotations

WEB: dict[str, tuple[str, str]] = {
    "CLI-6250": (
        "A request to the web API is not what its route takes.",
        "Read the route in /api/v1/openapi.json.",
    ),
    "CLI-6251": (
        "A request to the web listener comes from another site, or is addressed to another name.",
        "Send it from the page of the server, with its own name and as JSON.",
    ),
    "CLI-6252": ("The body of a request to the web API is too large.", "Send less in one request."),
    "CLI-6253": (
        "As many web sessions or streams are open as the server allows.",
        "Close some, or wait until idle ones are closed.",
    ),
    "INT-9062": (
        "A request to the web listener failed by a fault.",
        "Report a defect with the server's log.",
    ),
}
