"""Functions of arrays, maps and rows, those with a lambda among them: their declarations."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.functions.nested_type_rules import (
    array_element,
    array_of,
    at_zone,
    binned,
    element,
    entry,
    field,
    flattened,
    has_key,
    joined_texts,
    map_of,
    map_of_arrays,
    map_of_entries,
    maps_joined,
    named_row,
    of_array,
    of_arrays,
    of_map,
    repeated,
    row_of,
    sequence,
    sized,
    with_element,
)
from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Typing, fixed
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING, Array, Map

CONSTRUCTORS: tuple[Function, ...] = (
    Function(
        "array", "array(a, b, ..)", "An array; also ARRAY[a, b, ..].", array_of, (0, None), nullable=False
    ),
    # Fallible: two equal keys, or a NULL key, are an error of the row.
    Function(
        "map",
        "map(k, v, ..)",
        "A map; also MAP[k, v, ..]. A NULL key, or one key twice, raises.",
        map_of,
        (2, None),
        nullable=False,
        fallible=True,
    ),
    Function(
        "struct",
        "struct(a, b, ..)",
        "A row; its fields are called as the columns, else col1, col2, ..",
        row_of,
        (1, None),
        ("row",),
        nullable=False,
    ),
    Function(
        "named_struct",
        "named_struct('x', a, ..)",
        "A row with these fields.",
        named_row,
        (2, None),
        nullable=False,
    ),
)

ACCESS: tuple[Function, ...] = (
    # field, element and at_time_zone are operators: users write row.name, a[i] and AT TIME ZONE.
    Function("field", "row.name", "A field of a row.", field, (2, 2), nullable=True),
    # a[i] counts from 1, as in Flink and the SQL standard; Spark's a[i] counts from 0 (get does, too).
    Function(
        "element",
        "a[i], m[key]",
        "The element at a position from 1, the value of a key; NULL where there is none.",
        element,
        (2, 2),
        nullable=True,
    ),
    # Raises beyond the array; try_element_at and a[i] return NULL there.
    Function(
        "element_at",
        "element_at(a, i)",
        "The element at a position from 1 (from the end below zero; none there raises), or the "
        "value of a map's key (NULL).",
        element,
        (2, 2),
        nullable=True,
        fallible=True,
    ),
    Function(
        "try_element_at",
        "try_element_at(a, i)",
        "element_at; NULL where there is none.",
        element,
        (2, 2),
        nullable=True,
        fallible=True,
    ),
    Function(
        "get",
        "get(a, i)",
        "The element at a position from 0; NULL where there is none.",
        array_element,
        (2, 2),
        nullable=True,
    ),
    Function(
        "at_time_zone",
        "t AT TIME ZONE 'zone'",
        "A wall-clock time in a zone as an instant; an instant as the wall-clock time there.",
        at_zone,
        (2, 2),
    ),
)

ARRAYS: tuple[Function, ...] = (
    Function(
        "size",
        "size(x)",
        "The number of elements of an array, of entries of a map.",
        sized,
        (1, 1),
        ("cardinality", "array_size", "array_length", "list_length"),
    ),
    # NULL where x is not there but a NULL is: the NULL might be x.
    Function(
        "array_contains",
        "array_contains(a, x)",
        "Whether x is an element; NULL where it is not found beside NULLs.",
        with_element(BOOLEAN),
        (2, 2),
        nullable=True,
    ),
    Function(
        "array_position",
        "array_position(a, x)",
        "The position of the first x from 1; 0 when there is none.",
        with_element(BIGINT),
        (2, 2),
    ),
    Function("array_remove", "array_remove(a, x)", "The elements that are not x.", with_element(), (2, 2)),
    # Nullable: array_append(NULL, x) is NULL.
    Function(
        "array_append",
        "array_append(a, x)",
        "The array with x at its end.",
        with_element(),
        (2, 2),
        nullable=True,
    ),
    Function(
        "array_prepend",
        "array_prepend(a, x)",
        "The array with x before it.",
        with_element(),
        (2, 2),
        nullable=True,
    ),
    Function(
        "array_distinct",
        "array_distinct(a)",
        "Each element once, at its first position.",
        of_array(Array, compares=True),
        (1, 1),
    ),
    Function("array_compact", "array_compact(a)", "The elements that are not NULL.", of_array(Array), (1, 1)),
    # The two sorts of Spark differ in NULLs: sort_array has them first, array_sort last.
    Function(
        "sort_array",
        "sort_array(a[, ascending])",
        "The elements in order, NULLs first; descending NULLs last.",
        of_array(Array, BOOLEAN, compares=True),
        (1, 2),
    ),
    Function(
        "array_sort",
        "array_sort(a)",
        "The elements in ascending order, NULLs last.",
        of_array(Array, compares=True),
        (1, 1),
    ),
    Function(
        "array_join",
        "array_join(a, sep[, null])",
        "The elements joined; NULLs are skipped, or written so.",
        joined_texts,
        (2, 3),
        ("array_to_string",),
        nullable=True,
    ),
    # The result is an element, hence the identity.
    Function(
        "array_min",
        "array_min(a)",
        "The least element; NULLs are skipped.",
        of_array(lambda kind: kind, compares=True),
        (1, 1),
        nullable=True,
    ),
    Function(
        "array_max",
        "array_max(a)",
        "The greatest element; NULLs are skipped, NaN is the greatest.",
        of_array(lambda kind: kind, compares=True),
        (1, 1),
        nullable=True,
    ),
    Function("array_union", "array_union(a, b)", "The elements of both, each once.", of_arrays(), (2, 2)),
    Function(
        "array_intersect",
        "array_intersect(a, b)",
        "The elements of a that are in b, each once.",
        of_arrays(),
        (2, 2),
    ),
    Function(
        "array_except",
        "array_except(a, b)",
        "The elements of a that are not in b, each once.",
        of_arrays(),
        (2, 2),
    ),
    Function(
        "arrays_overlap",
        "arrays_overlap(a, b)",
        "Whether they share an element that is not NULL; NULL where a NULL leaves it open.",
        of_arrays(BOOLEAN),
        (2, 2),
        nullable=True,
    ),
    Function("array_repeat", "array_repeat(x, n)", "x n times.", repeated, (2, 2), nullable=True),
    Function(
        "slice",
        "slice(a, start, length)",
        "A piece; start counts from 1, below zero from the end; 0 or a negative length raises.",
        of_array(Array, INT, INT),
        (3, 3),
        fallible=True,
    ),
    # One level only: ARRAY<ARRAY<ARRAY<INT>>> becomes ARRAY<ARRAY<INT>>.
    Function(
        "flatten",
        "flatten(a)",
        "The elements of the arrays in an array; NULL when one of these is NULL.",
        flattened,
        (1, 1),
        nullable=True,
    ),
    # Fallible: no sequence goes from first to last with a step of 0.
    Function(
        "sequence",
        "sequence(first, last[, step])",
        "The values from first to last; the step is 1 (a day), -1 downwards.",
        sequence,
        (2, 3),
        fallible=True,
    ),
    Function(
        "split",
        "split(s, regex[, limit])",
        "The pieces of a text between the matches.",
        fixed(STRING, STRING, INT, result=Array(STRING)),
        (2, 3),
        fallible=True,
    ),
)

MAPS: tuple[Function, ...] = (
    Function("map_keys", "map_keys(m)", "The keys.", of_map(lambda m: Array(m.key)), (1, 1)),
    Function("map_values", "map_values(m)", "The values.", of_map(lambda m: Array(m.value)), (1, 1)),
    Function(
        "map_entries",
        "map_entries(m)",
        "The entries as rows (key, value).",
        of_map(lambda m: Array(entry(m))),
        (1, 1),
    ),
    Function("map_contains_key", "map_contains_key(m, key)", "Whether the key is there.", has_key, (2, 2)),
    Function(
        "map_from_arrays",
        "map_from_arrays(keys, values)",
        "A map of two arrays of one length.",
        map_of_arrays,
        (2, 2),
        fallible=True,
    ),
    Function(
        "map_from_entries",
        "map_from_entries(a)",
        "A map of rows of two fields.",
        map_of_entries,
        (1, 1),
        nullable=True,
        fallible=True,
    ),
    Function(
        "histogram_bins",
        "histogram_bins(m, n)",
        "A map of values and counts as n rows (x, y): the nearest two become their mean until n are left.",
        binned,
        (2, 2),
        fallible=True,
    ),
    # As Spark's spark.sql.mapKeyDedupPolicy = EXCEPTION, its default.
    Function(
        "map_concat",
        "map_concat(a, b, ..)",
        "The entries of all maps; one key twice raises.",
        maps_joined,
        (1, None),
        fallible=True,
    ),
    Function(
        "str_to_map",
        "str_to_map(s[, pairs[, keys]])",
        "A map of a text such as a:1,b:2; the separators are regular expressions.",
        fixed(STRING, STRING, STRING, result=Map(STRING, STRING)),
        (1, 3),
        fallible=True,
    ),
)

# In the order of docs/FUNCTIONS.md.
NESTED: tuple[Function, ...] = (*CONSTRUCTORS, *ACCESS, *ARRAYS, *MAPS)


def with_function(operands: Sequence[Operand]) -> Typing:
    """Refuse a call without a function: the binder reads those that have one."""
    raise Mismatch("the last argument is a function of the elements", None)


# The binder types a lambda from the elements; these declarations are for names, arity and the reference.
LAMBDAS: tuple[Function, ...] = (
    Function(
        "transform",
        "transform(a, x -> ..)",
        "The result of the function for each element; (x, i) -> .. has its index from 0.",
        with_function,
        (2, 2),
    ),
    Function(
        "filter",
        "filter(a, x -> ..)",
        "The elements for which the function is TRUE; (x, i) -> .. has the index from 0.",
        with_function,
        (2, 2),
    ),
    Function(
        "exists",
        "exists(a, x -> ..)",
        "Whether it is TRUE for an element; NULL where a NULL leaves it open.",
        with_function,
        (2, 2),
        nullable=True,
    ),
    Function(
        "forall",
        "forall(a, x -> ..)",
        "Whether it is TRUE for all; NULL where a NULL leaves it open.",
        with_function,
        (2, 2),
        nullable=True,
    ),
    # Three arguments or four: the last function is applied to the final value.
    Function(
        "aggregate",
        "aggregate(a, start, (s, x) -> ..[, s -> ..])",
        "The value that goes from element to element, beginning with start; at last through the "
        "second function.",
        with_function,
        (3, 4),
        ("reduce",),
        nullable=True,
    ),
    Function(
        "zip_with",
        "zip_with(a, b, (x, y) -> ..)",
        "The result of the function for elements of equal index; the shorter one has NULLs.",
        with_function,
        (3, 3),
    ),
    Function(
        "map_filter",
        "map_filter(m, (k, v) -> ..)",
        "The entries for which it is TRUE.",
        with_function,
        (2, 2),
    ),
    # Fallible: two keys may become one.
    Function(
        "transform_keys",
        "transform_keys(m, (k, v) -> ..)",
        "The values under other keys; one key twice raises.",
        with_function,
        (2, 2),
        fallible=True,
    ),
    Function(
        "transform_values",
        "transform_values(m, (k, v) -> ..)",
        "The keys with other values.",
        with_function,
        (2, 2),
    ),
)
LAMBDA_NAMES = {name: function for function in LAMBDAS for name in (function.name, *function.aliases)}
