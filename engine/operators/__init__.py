"""The operator factory, and operators of one file. In engine it may import lookup and checkpoint and the
layers below.
"""
