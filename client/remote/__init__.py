"""The session of a server, reached over Flight SQL: what ``penstock.connect("penstock://host")`` runs on."""
