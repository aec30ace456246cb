"""Sources and sinks written in Python by users. Imports ``engine.api`` and the connectors' shared files."""
