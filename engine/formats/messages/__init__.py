"""Message formats: the values of messages to rows and back, one format a file. It may import formats and the
layers below.
"""
