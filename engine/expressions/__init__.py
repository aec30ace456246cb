"""Typed expressions compiled to Arrow kernels."""

from penstock.engine.expressions.compiler import compile_expression, compile_predicate
from penstock.engine.expressions.site import EvaluationContext

__all__ = ["EvaluationContext", "compile_expression", "compile_predicate"]
