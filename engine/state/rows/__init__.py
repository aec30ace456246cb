"""Stored rows: sides of joins, and buffers of rows that wait for event time. It may import what
engine/state may.
"""
