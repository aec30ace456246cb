"""Stored rows: sides of joins, and buffers of rows pending until the watermark passes them. It may import
what engine/state may.
"""
