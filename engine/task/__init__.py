"""One task: the mailbox loop, its operator chain, its messages and its memory. In engine it may import
state and connectors and the layers below.
"""
