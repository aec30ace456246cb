"""What has a name: types, schemas, tables, functions, connectors, errors."""
