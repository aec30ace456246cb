"""Scripts and the statements that are not queries, parsed by a lark grammar. In planner it may import parser
and logical and the layers below.
"""
