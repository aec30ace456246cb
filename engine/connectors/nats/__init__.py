"""Streams of NATS JetStream: a source by sequences, a sink of atomic batches that hold the epoch."""
