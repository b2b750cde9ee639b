"""What tests and measurements start around Basalt: an API server, machines, a collector of what nobody owns, processes, jobs."""
