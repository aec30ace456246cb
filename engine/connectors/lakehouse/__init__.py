"""What Delta and Iceberg tables have in common: fitting columns to a table that others may change, and
reading its data files.
"""
