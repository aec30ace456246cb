"""Types, schemas, tables, names, settings and errors: the nouns that every package uses. It may import
no other package.
"""
