"""The compiler from typed expressions to functions of Arrow batches. In engine it may import storage and
kernels and the layers below.
"""

from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_expression, compile_predicate

__all__ = ["EvaluationContext", "compile_expression", "compile_predicate"]
