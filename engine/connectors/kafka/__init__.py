"""Apache Kafka by librdkafka; may import message formats and the interfaces of sources and sinks."""
