"""Window arithmetic, assignment and lateness, as pure functions. In engine it may import storage and
kernels and the layers below.
"""
