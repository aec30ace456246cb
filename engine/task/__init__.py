"""One task: the mailbox loop, its operator chain, its messages, its memory."""
