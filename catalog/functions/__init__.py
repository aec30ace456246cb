"""Signatures and result types of SQL functions, one family a file. It may import the files of catalog."""
