"""Rows of messages: what the connectors of message queues share. It may import formats and the interfaces of
sources.
"""
