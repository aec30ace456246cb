"""EXPLAIN: every stage of a plan as text or JSON. In planner it may import table_api and physical and
sql_generator and the layers below.
"""
