"""What tests and measurements start around Basalt: an API server, machines, the collector of what nobody owns, processes, jobs."""
