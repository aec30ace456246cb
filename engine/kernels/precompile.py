"""Precompilation of all kernels, so that no query waits a third of a second for each."""

from __future__ import annotations

from penstock.engine.kernels import (
    csv_fields,
    json_documents,
    json_elements,
    json_fields,
    kafka_messages,
    kafka_records,
    letters,
    libpq_copy,
    merge_intervals,
    message_frames,
    nfa_search,
    partition,
    pgoutput,
    postgres_rows,
    spark_hash,
    stable_hash,
    watermarks,
)
from penstock.engine.kernels.aggregates import (
    accumulate,
    bitwise,
    int128,
    min_max,
    moments,
)
from penstock.engine.kernels.avro import reader, writer
from penstock.engine.kernels.functions import (
    digests,
    histogram_bins,
    json_paths,
    list_sets,
    number_texts,
    regex_search,
    string_split,
    text_scans,
    time_texts,
    urls,
    variant_reader,
    variant_writer,
    variants,
    word_metrics,
)
from penstock.engine.kernels.index import (
    direct_index,
    gather,
    multi_index,
    pair_comparisons,
    pane_cells,
    partitioned_build,
    slots,
    sorted_entries,
    sorted_texts,
    tagged_index,
    window_entries,
    word_index,
)
from penstock.engine.kernels.kernel import Kernel

MODULES = (
    accumulate,
    reader,
    writer,
    bitwise,
    csv_fields,
    digests,
    direct_index,
    gather,
    histogram_bins,
    json_documents,
    json_fields,
    json_paths,
    min_max,
    stable_hash,
    kafka_messages,
    kafka_records,
    letters,
    libpq_copy,
    moments,
    multi_index,
    pair_comparisons,
    pane_cells,
    partition,
    partitioned_build,
    pgoutput,
    postgres_rows,
    nfa_search,
    merge_intervals,
    json_elements,
    message_frames,
    slots,
    sorted_entries,
    sorted_texts,
    spark_hash,
    list_sets,
    number_texts,
    regex_search,
    string_split,
    tagged_index,
    text_scans,
    time_texts,
    urls,
    variant_reader,
    variant_writer,
    variants,
    word_metrics,
    int128,
    watermarks,
    window_entries,
    word_index,
)
"""The modules with kernels. A test compares them with the files."""


def every_kernel() -> list[Kernel]:
    """Return the kernels of all modules, in the order of ``MODULES``."""
    return [kernel for module in MODULES for kernel in Kernel.every if kernel.__module__ == module.__name__]


def compile_every_kernel() -> tuple[int, int]:
    """Compile the kernels that are not in the cache. Return the number of kernels and of those compiled."""
    kernels = every_kernel()
    return len(kernels), sum(kernel.load() for kernel in kernels)
