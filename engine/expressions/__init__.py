"""Typed expressions compiled to Arrow kernels."""

from engine.expressions.compiler import compile_expression, compile_predicate
from engine.expressions.site import EvaluationContext

__all__ = ["EvaluationContext", "compile_expression", "compile_predicate"]
