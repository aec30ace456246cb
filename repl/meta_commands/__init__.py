"""The backslash commands of the shell and of scripts. In repl it may import launch and the layers below."""
