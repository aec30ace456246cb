"""How large a request of records a topic takes, asked of its broker once."""

from __future__ import annotations

import logging

from penstock.catalog.connectors.registry import option
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.kafka.client_properties import client_properties

NEWS = logging.getLogger("penstock.kafka")
_WAIT_S = 10.0
_LIMIT = "max.message.bytes"


def topic_limit(table: CatalogTable) -> int | None:
    """Return the topic's limit, where the table leaves out rows that are too large; ``None`` where it does
    not, or the broker does not say.

    A broker refuses whole requests, so such rows are found before they are sent.
    """
    if str(option(table, "on-error") or "fail").lower() == "fail":
        return None
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource

    topic = table.options["topic"].strip()
    try:
        client = AdminClient({**client_properties(table)})
        asked = client.describe_configs([ConfigResource("topic", topic)], request_timeout=_WAIT_S)
        return int(next(iter(asked.values())).result(_WAIT_S)[_LIMIT].value)
    except (KafkaException, TimeoutError, KeyError, ValueError) as error:
        # without the right DESCRIBE_CONFIGS the client's own limit is left
        NEWS.warning("topic %s: its %s is not known: %s", topic, _LIMIT, error)
        return None
