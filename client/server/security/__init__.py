"""Who may connect to a server and what each may do: users, roles, access to files and hosts, audit."""
