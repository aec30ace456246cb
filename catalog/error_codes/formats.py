"""Causes and cures of errors of message formats."""

from __future__ import annotations

FORMATS: dict[str, tuple[str, str]] = {
    "DAT-5201": (
        "A table of raw messages has no column, or several.",
        "Declare one column for the value; others can be METADATA columns.",
    ),
    "DAT-5210": (
        "A text is not an Avro schema, or refers to a type that is not there.",
        "Correct the schema; the message says what is wrong with it.",
    ),
    "DAT-5211": (
        "An Avro schema is recursive. A column has a fixed type, and such a value has none.",
        "Read the value as 'format' = 'raw' into a column of BYTES.",
    ),
    "DAT-5212": (
        "The schema of messages (Avro, protobuf) does not match the columns of the table.",
        "Declare the columns with the names and types of the schema.",
    ),
    "DAT-5213": (
        "Rows of a table cannot be written in an Avro schema: a column has no field, or no type.",
        "Change the columns or the schema; CAST helps where a type is too wide.",
    ),
    "DAT-5214": (
        "A value cannot be written: the schema does not have such a NULL, symbol, length or number.",
        "Filter or CAST such values in the query, or change the schema.",
    ),
    "DAT-5220": (
        "A schema registry cannot be reached, or answers that it is not ready. It was asked several times.",
        "Start the registry, or correct the URL; the job may be resumed.",
    ),
    "DAT-5221": (
        "A schema registry refuses access.",
        "Set the user and password, or the token, of the format's options.",
    ),
    "DAT-5222": (
        "A schema of the registry is of another kind than the format, or has too many references.",
        "Read the topic with the format that its messages are in.",
    ),
    "DAT-5223": (
        "A schema registry refuses to register a schema, or does not have it.",
        "Read the detail. Make the change compatible, or write to another subject.",
    ),
    "DAT-5224": (
        "The answer of a schema registry cannot be understood.",
        "Correct the URL: it is that of the registry, without a path of the API.",
    ),
    "DAT-5225": (
        "A file of certificates for a schema registry cannot be read.",
        "Correct the path; the files are in PEM.",
    ),
    "DAT-5230": (
        "A file is no descriptor file of protobuf, or lacks a file that it imports.",
        "Write it with protoc --include_imports --descriptor_set_out=FILE.",
    ),
    "DAT-5231": (
        "A message is not in the descriptor file, or is recursive.",
        "Give its name with its package. Read a recursive message as 'format' = 'raw'.",
    ),
    "DAT-5232": (
        "The format protobuf needs a package that is not installed.",
        "pip install 'penstock[protobuf]'.",
    ),
}
