"""Table functions, and aggregate and table functions written in Python. In engine it may import
expressions and windowing and exchange and changelog and the layers below.
"""
