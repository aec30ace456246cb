"""The listener of Flight SQL: stock ADBC and JDBC drivers, and our own remote client."""
