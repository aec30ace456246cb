"""Compiler of typed expressions."""

from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_expression, compile_predicate

__all__ = ["EvaluationContext", "compile_expression", "compile_predicate"]
