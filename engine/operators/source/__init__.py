"""Operators at the head of a chain, and watermark generators. It may import what engine/operators may."""
