"""What actions and plugins are built on: the session, statements that can be undone, registries, and what a cycle tells."""
