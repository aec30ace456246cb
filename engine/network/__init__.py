"""The data plane between task managers: frames, element codec, links with credits per channel, and the sockets they run over."""
