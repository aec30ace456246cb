"""Tables of this process: registered tables, results, materialized views, late rows, bad records. It may
import the same layers as engine/connectors.
"""
