"""Streams of Redis and Valkey: a source by entry ids, a sink that stores its epoch beside the stream."""
