"""Parameters of a statement: values for ``?`` by position, or for ``:name`` and ``$name`` by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import DataType
from penstock.planner.parser.syntax_nodes import span_of

Parameters = Sequence[object] | Mapping[str, object]
"""The values of one statement: a list for ``?``, a dict for names."""


@dataclass(frozen=True)
class OpenParameter:
    """In place of a value: the parameter has none yet, and is bound as a ``Parameter`` of this type."""

    name: str
    type: DataType


@dataclass(frozen=True)
class TypedValue:
    """A value that is bound as this type, whatever its Python type."""

    type: DataType
    value: object


def check_parameters(trees: Sequence[exp.Expr], parameters: Parameters, span: Span) -> None:
    """Raise SQL-1013 unless the values are those that the placeholders of a statement ask for. There are
    as many as ``?``, or one for each name and no other.
    """
    placeholders = [node for tree in trees for node in tree.find_all(exp.Placeholder)]
    named = [node for node in placeholders if node.this]
    if named and len(named) < len(placeholders):
        raise _wrong("a statement has either ? or names", span_of(named[0]), "write :name for every value")
    if named:
        _check_names(named, parameters, span)
    elif isinstance(parameters, Mapping) and (placeholders or parameters):
        _refuse_names(parameters, placeholders, span)
    elif (wanted := sum(map(positional_count, trees))) != len(parameters):
        given = len(parameters)
        message = (
            f"the statement has {wanted} parameter{'s' if wanted != 1 else ''}, "
            f"{given} {'is' if given == 1 else 'are'} given"
        )
        raise _wrong(message, span, "pass one value for each ?")


def positional_count(tree: exp.Expr) -> int:
    """Return the number of ``?`` in a query."""
    # a clause that the parser copies has its ? twice in the tree: one number, one value
    return len({node.meta["index"] for node in tree.find_all(exp.Placeholder) if not node.this})


def values_of(tree: exp.Expr, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return the values of the names that a query has."""
    names = {node.name for node in tree.find_all(exp.Placeholder)}
    return {name: value for name, value in parameters.items() if name in names}


def refuse_parameters(tree: exp.Expr) -> None:
    """Raise SQL-1013 for a placeholder in the query of a view, which is stored as text."""
    if (node := tree.find(exp.Placeholder)) is not None:
        hint = "write the value into the view, or give it to the SELECT that reads the view"
        raise _wrong("a view is stored as text and takes no parameters", span_of(node), hint)


def placeholder_value(node: exp.Expr, parameters: Parameters) -> object:
    """Return the value of a placeholder, or raise SQL-1013."""
    if isinstance(parameters, Mapping):
        if node.name in parameters:
            return parameters[node.name]
    # ? are numbered by the parser in the order of the text
    elif not node.this and node.meta["index"] < len(parameters):
        return parameters[node.meta["index"]]
    raise _wrong("this parameter has no value", span_of(node), "write the value into the statement")


def _check_names(named: Sequence[exp.Expr], parameters: Parameters, span: Span) -> None:
    wanted = list(dict.fromkeys(node.name for node in named))
    if not isinstance(parameters, Mapping):
        pairs = ", ".join(f'"{name}": ..' for name in wanted)
        message = f"parameter {named[0].name} has a name, and "
        message += "values without names are given" if len(parameters) else "no value is given"
        raise _wrong(message, span_of(named[0]), f"pass a dict to execute: {{{pairs}}}")
    for node in named:
        if node.name not in parameters:
            hint = did_you_mean(node.name, list(map(str, parameters))) or f'add "{node.name}": .. to the dict'
            raise _wrong(f"parameter {node.name} has no value", span_of(node), hint)
    unknown = [name for name in parameters if name not in wanted]
    if unknown:
        hint = did_you_mean(str(unknown[0]), wanted) or f"its parameters: {', '.join(wanted)}"
        raise _wrong(f'the statement has no parameter "{unknown[0]}"', span, hint)


def _refuse_names(parameters: Mapping[str, object], placeholders: Sequence[exp.Expr], span: Span) -> None:
    if placeholders:
        message = "the parameters of the statement have no names, and a dict is given"
        raise _wrong(message, span_of(placeholders[0]), "pass a list, or write :name in place of ?")
    name = next(iter(parameters))
    raise _wrong(f'the statement has no parameter "{name}"', span, f"write :{name} where the value belongs")


def _wrong(message: str, span: Span | None, hint: str) -> PenstockError:
    return PenstockError("SQL-1013", message, span=span, hint=hint, sqlstate="07001")
