"""The servers that `make up` brings along: PostgreSQL, Valkey and the supervisor of all processes."""
