"""What tables ask of the tasks that read them must be possible."""

from __future__ import annotations

from penstock.catalog.connectors.common_options import ALIGNMENT_DRIFT, ALIGNMENT_GROUP, ALIGNMENT_INTERVAL
from penstock.catalog.errors import PenstockError
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.physical.chaining import subtasks


def check_alignment(laid: LogicalPlan, parallelism: int, deployment: str) -> None:
    """Refuse watermark alignment that would do nothing: SQL-1408.

    A table without a watermark has no event time. Between processes nobody compares how far subtasks are, and
    only subtasks of one number are in one process.
    """
    for node in laid.walk():
        if not isinstance(node, Scan) or not node.table.options.keys() & _KEYS:
            continue
        name = node.table.name
        if ALIGNMENT_DRIFT not in node.table.options:
            message = f"table {name} has options of watermark alignment without '{ALIGNMENT_DRIFT}'"
            raise PenstockError("SQL-1408", message, hint=f"add '{ALIGNMENT_DRIFT}' = '1 min'")
        if node.table.watermark is None:
            message = f"table {name} has '{ALIGNMENT_DRIFT}' and no watermark: its splits have no event time"
            hint = "declare WATERMARK FOR a column of the table, or leave the option out"
            raise PenstockError("SQL-1408", message, hint=hint)
        if deployment != "embedded" and subtasks(node, parallelism) > 1:
            message = (
                f"table {name} has '{ALIGNMENT_DRIFT}', and its subtasks would be in several worker "
                "processes, which do not align with each other"
            )
            hint = "SET 'deployment' = 'embedded', or read it by one subtask: 'scan.parallelism' = '1'"
            raise PenstockError("SQL-1408", message, hint=hint)


_KEYS = {ALIGNMENT_DRIFT, ALIGNMENT_GROUP, ALIGNMENT_INTERVAL}
