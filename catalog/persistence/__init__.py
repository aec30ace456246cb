"""The catalog on disk: the statements that make it again. In catalog it may import functions and
connectors.
"""
