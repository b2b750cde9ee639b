"""What every command has: the configuration, the connection, options, tables, errors with their exit codes."""
