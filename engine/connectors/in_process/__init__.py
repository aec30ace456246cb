"""Tables of this process: registered tables, results, materialized views, late rows, bad records. It may
import what engine/connectors may.
"""
