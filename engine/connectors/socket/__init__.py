"""Lines of JSON from a TCP connection; may import formats and the interfaces of sources."""
