"""The scheduler: which pods get which nodes, when, and why not. No Django here; docs/architecture.md has the map."""
