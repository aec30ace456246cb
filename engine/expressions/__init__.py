"""The compiler from typed expressions to functions of Arrow batches. In engine it may import storage and
kernels and the layers below.
"""

from penstock.engine.expressions.compiler import compile_expression, compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext

__all__ = ["EvaluationContext", "compile_expression", "compile_predicate"]
