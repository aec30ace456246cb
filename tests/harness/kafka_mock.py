"""librdkafka's mock cluster, for errors that a broker of the tests does not answer with. It is wrong about
transactions (what is aborted can be read), and so is used for nothing else.
"""

from __future__ import annotations

from ctypes import c_char_p, c_int, c_int16, c_size_t, c_void_p

from penstock.engine.connectors.kafka.librdkafka import PRODUCER, Librdkafka, load

TOPIC_AUTHORIZATION_FAILED = 29
KAFKA_STORAGE_ERROR = 56
INVALID_TXN_STATE = 48
INVALID_RECORD = 87
PRODUCE, FETCH = 0, 1
ADD_PARTITIONS, END_TRANSACTION = 24, 26
_FUNCTIONS = (
    ("rd_kafka_handle_mock_cluster", c_void_p, (c_void_p,)),
    ("rd_kafka_mock_cluster_bootstraps", c_char_p, (c_void_p,)),
    ("rd_kafka_mock_topic_create", c_int, (c_void_p, c_char_p, c_int, c_int)),
    ("rd_kafka_mock_topic_set_error", None, (c_void_p, c_char_p, c_int)),
    ("rd_kafka_mock_push_request_errors_array", None, (c_void_p, c_int16, c_size_t, c_void_p)),
)


class MockCluster:
    """One mock broker, in this process."""

    def __init__(self) -> None:
        library = load()
        assert library is not None
        self.library: Librdkafka = library
        library.bind(_FUNCTIONS)
        self._client = library.client(PRODUCER, {"test.mock.num.brokers": "1", "log_level": "0"})
        self._cluster = library.rd_kafka_handle_mock_cluster(self._client)
        self.bootstrap = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic. It keeps the last 5 MiB of each partition, as they are sent."""
        made = self.library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)
        assert made == 0

    def refuse_topic(self, topic: str, error: int) -> None:
        """Answer requests for a topic with an error."""
        self.library.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), error)

    def refuse_requests(self, kind: int, *errors: int) -> None:
        """Answer the next requests of a kind with these errors."""
        array = (c_int * len(errors))(*errors)
        self.library.rd_kafka_mock_push_request_errors_array(self._cluster, kind, len(errors), array)

    def close(self) -> None:
        """End the broker."""
        self.library.rd_kafka_destroy(self._client)
