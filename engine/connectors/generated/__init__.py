"""Datagen and Nexmark: rows computed from their numbers. It may import what engine/connectors may."""
