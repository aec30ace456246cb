"""Datagen and Nexmark: rows as functions of their numbers."""
