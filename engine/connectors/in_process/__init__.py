"""Tables that live in this process."""
