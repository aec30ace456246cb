"""The command line. It may import client and all packages below it."""
