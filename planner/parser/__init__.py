"""Query text to syntax trees: scanner, token stream and the query grammar. In planner it may import
expressions.
"""
