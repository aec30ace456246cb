"""The executors of statements, one family a file, and their dispatch. In client it may import execution
and the layers below.
"""
