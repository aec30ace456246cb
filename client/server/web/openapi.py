"""The OpenAPI document of the API, made of the routes' declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from penstock.client.server.web.api_call import ApiRoute

PREFIX = "/api/v1"
_ERROR: dict[str, Any] = {
    "description": "The request was refused.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_SCHEMAS: dict[str, Any] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "description": "stable; ERRORS.md has its cause and cure"},
                    "message": {"type": "string"},
                    "hint": {"type": ["string", "null"]},
                    "detail": {"type": ["string", "null"]},
                    "sqlstate": {"type": "string"},
                    "line": {"type": ["integer", "null"]},
                    "column": {"type": ["integer", "null"]},
                    "text": {"type": "string", "description": "the whole error, as the shell prints it"},
                },
            }
        },
    }
}


def openapi_document(routes: Sequence[ApiRoute], version: str) -> dict[str, Any]:
    """Return the document of the routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "penstock",
            "version": version,
            "description": "Jobs and queries of one server. Streams are server-sent events.",
        },
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        # the empty one: a server on loopback may ask for no authentication
        "security": [{"bearer": []}, {}],
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    kind = "text/event-stream" if route.streams else "application/json"
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.help,
        "responses": {
            "200": {"description": route.help, "content": {kind: {"schema": {}}}},
            "default": _ERROR,
        },
    }
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if route.method == "POST":
        operation["requestBody"] = _body(route)
    return operation


def _body(route: ApiRoute) -> dict[str, Any]:
    required = [one.name for one in route.fields if one.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: {"type": one.kind, "description": one.help} for one in route.fields},
    }
    if required:
        schema["required"] = required
    return {"required": True, "content": {"application/json": {"schema": schema}}}
