"""The data plane: frames, credit and connections between processes. In engine it may import expressions
and windowing and exchange and changelog and the layers below.
"""
