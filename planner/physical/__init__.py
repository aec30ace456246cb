"""Operator specs, chains, job graph, stable operator ids."""
