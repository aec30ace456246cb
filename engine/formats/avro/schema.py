"""Avro schemas: JSON text to typed nodes, named types resolved. A recursive schema is refused: its values
have no columns.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NO_DEFAULT = object()
_MAX_DEPTH = 64
"""Deeper schemas are refused; each level is one call here and one in the compiler of programs."""


@dataclass(frozen=True)
class AvroField:
    """A field of a record; ``default`` is its JSON value, ``NO_DEFAULT`` where there is none."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class AvroType:
    """One type: ``kind`` is its name in the specification, such as ``record`` or ``long``.

    ``items``: the elements of an array, the values of a map. ``size``: bytes of a fixed. ``symbols`` and
    ``default`` are of an enum. An unknown or invalid logical type is no logical type, as the specification
    asks.
    """

    kind: str
    logical: str | None = None
    name: str = ""
    fields: tuple[AvroField, ...] = ()
    branches: tuple[AvroType, ...] = ()
    items: AvroType | None = None
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def element(self) -> AvroType:
        """The elements of an array, the values of a map."""
        assert self.items is not None
        return self.items

    def __str__(self) -> str:
        if self.kind == "union":
            return f"[{', '.join(map(str, self.branches))}]"
        if self.kind in ("array", "map"):
            return f"{self.kind} of {self.items}"
        if self.logical == "decimal":
            return f"{self.kind} (decimal({self.precision}, {self.scale}))"
        named = f" {self.name}" if self.name else ""
        return f"{self.kind}{named}" + (f" ({self.logical})" if self.logical else "")

    @property
    def smallest(self) -> int:
        """The bytes that a value has at least."""
        if self.kind == "record":
            return sum(field.type.smallest for field in self.fields)
        return {"null": 0, "float": 4, "double": 8, "fixed": self.size}.get(self.kind, 1)


def bad_schema(reason: str, where: str) -> PenstockError:
    """Return the error for a schema that is none."""
    return PenstockError(
        "DAT-5210", f"{where} is no Avro schema: {reason}", hint="correct the schema", kind=Kind.EXTERNAL
    )


def parse_schema(text: str, where: str, known: dict[str, AvroType] | None = None) -> AvroType:
    """Return the type of a schema's text. ``known``: named types of other schemas it refers to, which gets
    its own ones, too. ``where`` names the schema in errors.

    DAT-5210 for a text that is no schema, DAT-5211 for a recursive one.
    """
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        # "string" without quotes is a schema in some registries' replies
        if text.strip() in PRIMITIVES:
            described = text.strip()
        else:
            raise bad_schema(f"it is not JSON ({str(error)[:80]})", where) from None
    return _Parser(where, {} if known is None else known).parse(described, "", 0)


class _Parser:
    def __init__(self, where: str, names: dict[str, AvroType]) -> None:
        self._where = where
        self._names = names
        # records whose fields are being read: a reference to one is recursion
        self._open: set[str] = set()

    def parse(self, described: Any, space: str, depth: int) -> AvroType:
        if depth > _MAX_DEPTH:
            raise bad_schema(f"it is nested more than {_MAX_DEPTH} levels deep", self._where)
        if isinstance(described, str):
            return self._named(described, space)
        if isinstance(described, list):
            branches = tuple(self.parse(branch, space, depth + 1) for branch in described)
            if not branches or any(branch.kind == "union" for branch in branches):
                raise bad_schema("a union has types that are no unions, one at least", self._where)
            return AvroType("union", branches=branches)
        if not isinstance(described, dict) or "type" not in described:
            raise bad_schema(f"{json.dumps(described)[:60]} is no type", self._where)
        kind = described["type"]
        # {"type": {"type": "int"}}: the outer braces say nothing
        if not isinstance(kind, str):
            return self.parse(kind, space, depth + 1)
        match kind:
            case "array":
                return AvroType(kind, items=self.parse(self._part(described, "items"), space, depth + 1))
            case "map":
                return AvroType(kind, items=self.parse(self._part(described, "values"), space, depth + 1))
            case "record" | "error":
                return self._record(described, space, depth)
            case "enum":
                return self._enum(described, space)
            case "fixed":
                return self._fixed(described, space)
        if kind not in PRIMITIVES:
            return self._named(kind, space)
        logical, precision, scale = _logical(described, kind, 0)
        return AvroType(kind, logical, precision=precision, scale=scale)

    def _part(self, described: dict[str, Any], key: str) -> Any:
        if key not in described:
            raise bad_schema(f"{described.get('type')} has no {key}", self._where)
        return described[key]

    def _named(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not space else f"{space}.{name}"
        if full in self._open or (full not in self._names and name in self._open):
            raise PenstockError(
                "DAT-5211",
                f"{self._where} is recursive: {full} holds itself",
                hint="a column has a fixed type: read it as 'format' = 'raw' into BYTES",
                kind=Kind.EXTERNAL,
            )
        found = self._names.get(full) or self._names.get(name)
        if found is None:
            raise bad_schema(f"there is no type {full}", self._where)
        return found

    def _full_name(self, described: dict[str, Any], space: str) -> tuple[str, str]:
        """Return the full name of a named type, and the namespace of what is in it."""
        name = self._part(described, "name")
        if not isinstance(name, str) or not name:
            raise bad_schema(f"{json.dumps(name)[:60]} is no name", self._where)
        if "." in name:
            return name, name.rpartition(".")[0]
        space = str(described.get("namespace", space) or "")
        return (f"{space}.{name}" if space else name), space

    def _define(self, name: str, made: AvroType) -> AvroType:
        if name in self._names:
            raise bad_schema(f"{name} is defined twice", self._where)
        self._names[name] = made
        return made

    def _record(self, described: dict[str, Any], space: str, depth: int) -> AvroType:
        name, inner = self._full_name(described, space)
        parts = self._part(described, "fields")
        if not isinstance(parts, list):
            raise bad_schema(f"the fields of {name} are no list", self._where)
        self._open.add(name)
        fields = []
        for part in parts:
            if not isinstance(part, dict) or not isinstance(part.get("name"), str):
                raise bad_schema(f"a field of {name} has no name", self._where)
            kind = self.parse(self._part(part, "type"), inner, depth + 1)
            # some writers put the logical type beside the field's type
            if isinstance(part["type"], str) and part["type"] in PRIMITIVES and "logicalType" in part:
                logical, precision, scale = _logical(part, kind.kind, 0)
                kind = AvroType(kind.kind, logical, precision=precision, scale=scale)
            aliases = tuple(str(alias) for alias in part.get("aliases", ()))
            fields.append(AvroField(part["name"], kind, part.get("default", NO_DEFAULT), aliases))
        self._open.discard(name)
        if len({field.name for field in fields}) < len(fields):
            raise bad_schema(f"{name} has a field twice", self._where)
        return self._define(name, AvroType("record", name=name, fields=tuple(fields)))

    def _enum(self, described: dict[str, Any], space: str) -> AvroType:
        name, _ = self._full_name(described, space)
        symbols = self._part(described, "symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise bad_schema(f"the symbols of {name} are no list of texts", self._where)
        default = described.get("default")
        made = AvroType(
            "enum",
            name=name,
            symbols=tuple(symbols),
            default=default if isinstance(default, str) else None,
        )
        return self._define(name, made)

    def _fixed(self, described: dict[str, Any], space: str) -> AvroType:
        name, _ = self._full_name(described, space)
        size = self._part(described, "size")
        if not isinstance(size, int) or size < 0:
            raise bad_schema(f"the size of {name} is no number of bytes", self._where)
        logical, precision, scale = _logical(described, "fixed", size)
        return self._define(
            name, AvroType("fixed", logical, name, size=size, precision=precision, scale=scale)
        )


_LOGICAL = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        *(f"{zone}timestamp-{unit}" for zone in ("", "local-") for unit in ("millis", "micros", "nanos")),
    ),
    "string": ("uuid",),
    "bytes": ("decimal",),
    "fixed": ("decimal", "uuid", "duration"),
}


def _logical(described: dict[str, Any], kind: str, size: int) -> tuple[str | None, int, int]:
    logical = described.get("logicalType")
    if logical not in _LOGICAL.get(kind, ()):
        return None, 0, 0
    if logical == "uuid" and kind == "fixed" and size != 16:
        return None, 0, 0
    if logical != "decimal":
        return str(logical), 0, 0
    precision, scale = described.get("precision"), described.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None, 0, 0
    valid = precision > 0 and 0 <= scale <= precision
    return ("decimal", precision, scale) if valid else (None, 0, 0)
