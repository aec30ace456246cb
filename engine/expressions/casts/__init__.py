"""CAST and TRY_CAST, one source type a file. It may import what engine/expressions may."""
