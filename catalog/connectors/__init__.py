"""The options each connector declares and what it promises, such as exactly-once. It may import the
files of catalog.
"""
