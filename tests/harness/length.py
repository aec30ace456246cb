"""How long tests are: brief in ``make test``, at length in ``make soak``, which sets ``AT_LENGTH=1``.

A case that is only for ``make soak`` has the mark ``at_length``, and ``tests/conftest.py`` leaves it out
otherwise. A test that does more there has the mark ``longer``. ``make soak`` runs both kinds. docs/TESTING.md
lists them.

Cases are left out in two ways: by name (``briefly``), or by a step in the table ``EACH``, which says of which
tests only each second or third case is run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import pytest

EACH = {
    "tests/compatibility/test_golden.py::test_restored_in_wider_types": 2,
    "tests/fault_injection/test_failpoints.py::test_failed_at_a_point_it_goes_on_exactly": 5,
    "tests/fault_injection/test_failpoints.py::test_killed_at_a_point_it_goes_on_exactly": 5,
    "tests/fault_injection/test_failpoints.py::test_killed_with_unaligned_checkpoints_it_goes_on_exactly": 2,
    "tests/fault_injection/test_shared_table.py::test_each_jobs_rows_are_there_once": 3,
    "tests/generated/queries/test_brought_spellings.py::test_rows_are_those_of_the_plain_words": 3,
    "tests/generated/queries/test_disorder.py::test_the_answer_is_that_of_the_splits": 3,
    "tests/generated/queries/test_query_relations.py::test_mr12_joins_turned_around": 3,
    "tests/generated/queries/test_query_relations.py::test_mr8_windows_of_one_step": 2,
    "tests/generated/queries/test_scripts.py::test_however_it_is_run": 10,
    "tests/generated/queries/test_state_at_zero.py::test_nothing_is_left_of_what_is_taken_back": 3,
    "tests/generated/queries/test_state_at_zero.py::test_nothing_is_left_of_what_time_has_passed": 3,
    "tests/generated/queries/test_stop_and_go.py::test_three_acts": 12,
    "tests/generated/queries/test_stream_relations.py::test_run_in_another_manner": 2,
    "tests/generated/queries/test_why_rows.py::test_input_rows_of_a_construct_make_the_row": 4,
    "tests/generated/structured_streaming/test_structured.py::test_spark_refuses": 2,
    "tests/simulation/test_planted.py::test_a_planted_bug_is_found": 3,
    "tests/state_machines/test_machines.py::test_operator_is_its_reference": 2,
    "tests/streaming/bad_inputs/test_resuming.py::test_the_cured_job_resumes": 2,
    "tests/streaming/databases/test_lookups.py::test_it_is_the_join_with_the_table": 2,
    "tests/streaming/databases/test_sinks.py::test_a_query_that_updates_its_rows_keeps_a_table_up_to_date": 3,
    "tests/streaming/kafka/test_source_acts.py::test_upserts_in_three_acts": 2,
    "tests/streaming/messages/test_redis_kill.py::test_killed_between_two_steps_of_a_commit": 2,
    "tests/streaming/migration/test_wider_types.py::test_anything_else_is_refused_with_both_schemas": 3,
    "tests/streaming/migration/test_wider_types.py::test_every_operator_goes_on_in_wider_types": 5,
    "tests/streaming/nexmark/test_queries.py::test_three_acts": 5,
    "tests/streaming/three_acts/test_above_sessions.py::test_no_session_is_lost": 3,
    "tests/streaming/three_acts/test_aggregates.py::test_groups": 2,
    "tests/streaming/three_acts/test_backfill.py::test_on_spark": 2,
    "tests/streaming/three_acts/test_backfill.py::test_three_acts": 7,
    "tests/streaming/three_acts/test_backfill_kills.py::test_killed_around_its_first_checkpoint": 3,
    "tests/streaming/three_acts/test_bounded_times.py::test_no_row_is_late_in_three_acts": 2,
    "tests/streaming/three_acts/test_changelogs.py::test_changes_are_well_formed": 3,
    "tests/streaming/three_acts/test_changelogs.py::test_straight_through": 2,
    "tests/streaming/three_acts/test_changelogs.py::test_three_acts": 6,
    "tests/streaming/three_acts/test_count_windows.py::test_duckdb_gives_the_same_rows": 2,
    "tests/streaming/three_acts/test_current_watermark.py::test_the_acts": 2,
    "tests/streaming/three_acts/test_emit.py::test_any_query_in_three_acts": 3,
    "tests/streaming/three_acts/test_emit.py::test_changes_come_to_the_rows_that_were_not_late": 5,
    "tests/streaming/three_acts/test_emit.py::test_three_acts": 5,
    "tests/streaming/three_acts/test_flights_matrix.py::test_large_batches": 3,
    "tests/streaming/three_acts/test_hints.py::test_the_same_answer_over_a_stop_and_at_another_parallelism": 2,
    "tests/streaming/three_acts/test_late_changes.py::test_changes_of_closed_windows_are_late": 3,
    "tests/streaming/three_acts/test_late_changes.py::test_joins_of_late_changes": 2,
    "tests/streaming/three_acts/test_late_rows.py::test_late_rows_go_to_a_table_of_their_own": 3,
    "tests/streaming/three_acts/test_late_rows.py::test_late_rows_of_a_job_can_be_read": 3,
    "tests/streaming/three_acts/test_late_rows.py::test_other_operators_tell_of_late_rows": 2,
    "tests/streaming/three_acts/test_map_keys.py::test_entries_have_no_order": 2,
    "tests/streaming/three_acts/test_match_recognize.py::test_classics": 3,
    "tests/streaming/three_acts/test_nested.py::test_three_acts": 9,
    "tests/streaming/three_acts/test_nested_aggregates.py::test_three_acts": 3,
    "tests/streaming/three_acts/test_nested_changes.py::test_what_is_left": 2,
    "tests/streaming/three_acts/test_over.py::test_kept_up_to_date": 2,
    "tests/streaming/three_acts/test_over.py::test_settled_by_time": 2,
    "tests/streaming/three_acts/test_over.py::test_settled_by_windows": 2,
    "tests/streaming/three_acts/test_parallelism_hints.py::test_each_operator_at_its_own_number": 3,
    "tests/streaming/three_acts/test_parallelism_options.py::test_the_acts_of_a_window": 2,
    "tests/streaming/three_acts/test_process_tables.py::test_resumed_at_every_checkpoint_in_another_number_of_subtasks": 3,
    "tests/streaming/three_acts/test_process_tables.py::test_whole_in_any_batches_and_subtasks": 4,
    "tests/streaming/three_acts/test_processing_time.py::test_three_acts_count_every_row_once": 2,
    "tests/streaming/three_acts/test_qualify.py::test_qualified_rows": 2,
    "tests/streaming/three_acts/test_reloaded_tables.py::test_a_failure_keeps_what_was_read_and_is_told_once": 2,
    "tests/streaming/three_acts/test_runtime_filters.py::test_a_backend_computes_the_keys_of_an_endless_stream": 2,
    "tests/streaming/three_acts/test_runtime_filters.py::test_a_checkpoint_knows_nothing_of_filters": 2,
    "tests/streaming/three_acts/test_runtime_filters.py::test_rows_are_the_same": 3,
    "tests/streaming/three_acts/test_runtime_filters.py::test_three_acts": 2,
    "tests/streaming/three_acts/test_session_rows.py::test_rows_know_their_session_in_three_acts": 3,
    "tests/streaming/three_acts/test_session_updates.py::test_sessions_of_what_is_left": 3,
    "tests/streaming/three_acts/test_session_updates.py::test_what_is_taken_back_too_late_stays": 3,
    "tests/streaming/three_acts/test_sink_disk_full.py::test_a_job_that_may_not_try_again_names_the_directory": 2,
    "tests/streaming/three_acts/test_sink_disk_full.py::test_when_the_disk_has_space_again_every_row_is_there_once": 3,
    "tests/streaming/three_acts/test_snapshot_joins.py::test_bounded_is_the_join_with_the_table_at_its_end": 2,
    "tests/streaming/three_acts/test_snapshot_joins.py::test_three_acts": 3,
    "tests/streaming/three_acts/test_spill.py::test_the_same_answer_from_memory_and_from_disk": 3,
    "tests/streaming/three_acts/test_subqueries.py::test_stream_and_batch": 4,
    "tests/streaming/three_acts/test_temporal_joins.py::test_three_acts": 3,
    "tests/streaming/three_acts/test_three_acts.py::test_three_acts": 4,
    "tests/streaming/three_acts/test_timed_joins.py::test_interval_join_in_three_acts": 5,
    "tests/streaming/three_acts/test_timed_joins.py::test_window_join_in_three_acts": 3,
    "tests/streaming/three_acts/test_unaligned_acts.py::test_killed_behind_a_slow_client": 5,
    "tests/streaming/three_acts/test_window_best_filters.py::test_rows_and_late_rows_are_the_same": 3,
    "tests/unit/client/execution/test_directory_names.py::test_a_job_writes_there_and_is_known_again": 3,
    "tests/unit/client/execution/test_point_query.py::test_rows_and_types_are_those_of_the_backend": 2,
    "tests/unit/client/execution/test_shared_bucket.py::test_jobs_of_several_programs_write_one_table": 2,
    "tests/unit/client/server/web/test_page.py::test_a_phone_shows_a_page_without_scrolling_sideways": 3,
    "tests/unit/client/statements/test_materialized_views.py::test_every_state_is_whole": 2,
    "tests/unit/client/statements/test_python_aggregates.py::test_a_window_of_python_goes_on_from_a_checkpoint": 2,
    "tests/unit/client/test_file_tables.py::test_csv_in_another_encoding_is_read_and_written": 3,
    "tests/unit/client/test_odd_csv.py::test_it_is_read_as_it_is_meant": 4,
    "tests/unit/engine/bounded/spark/test_backend.py::test_functions_mean_what_ours_mean": 2,
    "tests/unit/engine/bounded/spark/test_backend.py::test_spark_and_duckdb_agree": 2,
    "tests/unit/engine/bounded/test_duckdb.py::test_divisions_of_decimals": 2,
    "tests/unit/engine/bounded/test_duckdb.py::test_plans_run": 3,
    "tests/unit/engine/bounded/test_one_answer.py::test_the_stream_and_duckdb": 2,
    "tests/unit/engine/checkpoint/test_disk_full.py::test_a_step_that_fails_costs_its_checkpoint_only": 3,
    "tests/unit/engine/checkpoint/test_incremental.py::test_layers_give_the_state_whatever_was_given_up": 12,
    "tests/unit/engine/checkpoint/test_store.py::test_a_skipped_sync_is_caught": 2,
    "tests/unit/engine/connectors/filesystem/test_commit_writer.py::test_wherever_a_process_dies": 3,
    "tests/unit/engine/connectors/filesystem/test_compaction.py::test_wherever_a_process_dies": 3,
    "tests/unit/engine/connectors/filesystem/test_overwrite.py::test_partitions": 2,
    "tests/unit/engine/connectors/generated/test_nexmark_source.py::test_kinds_are_the_events_apart": 3,
    "tests/unit/engine/connectors/iceberg/test_file_reader.py::test_each_snapshot_has_the_last_row_of_each_key": 2,
    "tests/unit/engine/connectors/iceberg/test_foreign_tables.py::test_hidden_partitions_of_odd_values": 2,
    "tests/unit/engine/connectors/iceberg/test_key_removal.py::test_rows_that_equality_deletes_leave_out_do_not_come_back": 2,
    "tests/unit/engine/connectors/kafka/test_target.py::test_a_process_that_ends_in_the_middle": 3,
    "tests/unit/engine/connectors/lakehouse/test_other_writers.py::test_another_writer_gets_ahead": 2,
    "tests/unit/engine/expressions/test_against_spark.py::test_same_values_and_types_as_spark": 2,
    "tests/unit/engine/expressions/test_json_paths.py::test_paths_find_what_duckdb_finds": 2,
    "tests/unit/engine/expressions/test_outsized.py::test_the_ends_of_types_give_an_answer_or_a_sentence": 4,
    "tests/unit/engine/expressions/test_time_patterns.py::test_often": 5,
    "tests/unit/engine/formats/avro/test_avro.py::test_random_rows_are_read_by_fastavro": 4,
    "tests/unit/engine/formats/messages/test_change_envelopes.py::test_bad_messages_leave_the_others": 3,
    "tests/unit/engine/formats/messages/test_change_envelopes.py::test_json_is_what_it_is_in_the_other_formats": 3,
    "tests/unit/engine/formats/messages/test_change_envelopes.py::test_what_is_written_is_read": 3,
    "tests/unit/engine/formats/messages/test_json_objects.py::test_every_value_in_every_column": 2,
    "tests/unit/engine/formats/messages/test_json_objects.py::test_random_objects": 5,
    "tests/unit/engine/formats/test_debezium.py::test_bad_changes": 2,
    "tests/unit/engine/formats/test_formats.py::test_resume_at_every_row": 2,
    "tests/unit/engine/operators/aggregate/test_group_aggregate.py::test_large_groups_are_emitted_seldom_and_the_answer_is_the_same": 2,
    "tests/unit/engine/operators/join/test_interval_join.py::test_equals_reference": 2,
    "tests/unit/engine/operators/join/test_nearest_join.py::test_the_rows_are_duckdbs": 5,
    "tests/unit/engine/operators/join/test_regular_join.py::test_bounded_side_is_loaded_first": 2,
    "tests/unit/engine/operators/join/test_regular_join.py::test_join_equals_reference": 2,
    "tests/unit/engine/operators/join/test_temporal_join.py::test_equals_reference": 2,
    "tests/unit/engine/operators/over/test_over.py::test_in_time_rows_of_long_ago_stay": 3,
    "tests/unit/engine/operators/over/test_over_frames.py::test_every_call_over_every_frame": 2,
    "tests/unit/engine/operators/recursion/test_recursive_query.py::test_every_cut_is_the_batch_answer": 3,
    "tests/unit/engine/operators/test_arrival_order.py::test_rows_of_one_time_stand_as_they_arrived": 4,
    "tests/unit/engine/operators/test_pieces.py::test_the_answer_does_not_depend_on_the_size_of_pieces": 6,
    "tests/unit/engine/operators/test_state_ttl.py::test_a_changelog_stays_well_formed_when_state_expires": 2,
    "tests/unit/engine/operators/test_state_ttl.py::test_a_time_that_is_long_enough_changes_nothing": 2,
    "tests/unit/engine/operators/window/test_window_aggregate.py::test_two_phases": 3,
    "tests/unit/engine/state/aggregates/test_first_last.py::test_the_first_and_the_last_row_are_those_of_a_sorted_list": 2,
    "tests/unit/engine/state/aggregates/test_min_max.py::test_the_best_value_is_that_of_python": 2,
    "tests/unit/engine/state/aggregates/test_moments.py::test_moments_are_those_of_the_values": 2,
    "tests/unit/engine/state/aggregates/test_value_multiset.py::test_a_bag_gives_what_the_sorted_list_of_its_values_gives": 2,
    "tests/unit/engine/state/index/test_direct_index.py::test_like_a_dict": 2,
    "tests/unit/engine/state/index/test_nested_index.py::test_like_a_dict": 2,
    "tests/unit/engine/state/index/test_word_index.py::test_a_run_that_goes_round_a_growing_index_loses_no_key": 2,
    "tests/unit/engine/state/test_frozen_states.py::test_a_snapshot_is_the_state_at_its_barrier": 2,
    "tests/unit/engine/state/test_large_state.py::test_answers_do_not_depend_on_what_an_array_holds": 2,
    "tests/unit/optimizer/test_random_jobs.py::test_jobs_give_the_same_rows": 2,
    "tests/unit/optimizer/test_random_over.py::test_jobs_give_the_same_rows": 2,
    "tests/unit/optimizer/test_random_over.py::test_same_rows": 2,
    "tests/unit/optimizer/test_random_plans.py::test_same_rows": 5,
    "tests/unit/optimizer/test_shared_subplans.py::test_what_is_shared_and_that_it_changes_nothing": 3,
    "tests/unit/planner/statements/test_grammar.py::test_tables_of_something_else_are_made_anew": 3,
    "tests/unit/planner/test_mutations.py::test_nothing_but_plans_and_placed_errors": 3,
    "tests/unit/repl/test_cli.py::test_the_first_signal_stops_a_job_with_a_checkpoint": 2,
    "tests/unit/repl/test_cli.py::test_two_endless_inserts_run_side_by_side_until_they_are_stopped": 2,
}
"""Of the cases of these tests each so-manieth is run in brief, beginning with the first."""
AT_LENGTH = os.environ.get("AT_LENGTH") == "1"
T = TypeVar("T")


def of_length(brief: T, long: T) -> T:
    """Return what this run shall use; the test wants the mark ``longer``."""
    return long if AT_LENGTH else brief


def examples(long: int) -> int:
    """Return how many examples a test of hypothesis tries: a quarter in brief. ``tests/conftest.py`` marks
    such tests ``longer``.
    """
    return of_length(long // 4, long)


def left_out(names: Iterable[str]) -> set[str]:
    """Return which of these tests, in their order, are run at length only by the table ``EACH``.

    A name is pytest's, with the case in brackets.
    """
    met: Counter[str] = Counter()
    found = set()
    for name in names:
        test = name.partition("[")[0]
        if met[test] % EACH.get(test, 1):
            found.add(name)
        met[test] += 1
    return found


def briefly(cases: Iterable[Any], brief: Collection[Any]) -> list[Any]:
    """Return the cases of a test; those that are not among ``brief`` are run at length only.

    A case is a name, or a tuple of values. AssertionError for a brief case that is not there.
    """
    told = list(cases)
    assert all(case in told for case in brief), "a brief case has another name now"
    return [
        case
        if case in brief
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.at_length)
        for case in told
    ]
