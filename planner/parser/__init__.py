"""The query parser: scanner, token stream and grammar turn query text into syntax trees. In planner it may
import expressions.
"""
