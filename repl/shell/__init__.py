"""The interactive shell. In repl it may import launch and the layers below."""
