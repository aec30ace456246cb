"""Causes and cures of errors: sources and sinks written in Python, and connectors of other packages."""

from __future__ import annotations

PYTHON_CONNECTORS: dict[str, tuple[str, str]] = {
    "DAT-5601": (
        "A table names a Python source or sink that there is not, or whose module may not be imported.",
        "Register it with connection.create_connector, or list its module in 'python.modules'.",
    ),
    "DAT-5602": (
        "The code of a Python source or sink raised an exception.",
        "Correct the line that the message names. OSError and TimeoutError restart the job.",
    ),
    "DAT-5603": (
        "A Python source yielded something else than a batch and a position, or listed no texts as splits.",
        "Yield (pyarrow.RecordBatch, position), the position of values that JSON has.",
    ),
    "DAT-5604": (
        "The method last_committed of a Python sink returned no epoch.",
        "Return the epoch that commit stored last for this writer, 0 when there is none.",
    ),
    "DAT-5605": (
        "An object cannot be a Python source or sink.",
        "Decorate a generator function with @penstock.source, or a class with @penstock.sink.",
    ),
    "DAT-5610": (
        "An installed package registers a connector that cannot be imported.",
        "Update the package that the message names, or uninstall it. Other connectors work.",
    ),
    "DAT-5611": (
        "An installed package registers a connector that does not keep to the interface.",
        "Tell its author; docs/CONNECTOR_INTERFACE.md has the interface.",
    ),
}
