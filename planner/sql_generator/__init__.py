"""The SQL generator: bounded plans as SQL text for a bounded backend. In planner it may import binder and the
layers below.
"""
