"""What every part of the engine speaks: stream elements, interfaces of operator, source and sink, clock,
options. In engine it may import metrics.
"""
