"""Avro: schemas, their resolution to columns as programs, and the columns that kernels fill and read. It may
import formats and the layers below.
"""
