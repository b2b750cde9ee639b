"""Simulations: traces, files and the cluster as it is, played in simulated time; as a command, a task and pages."""
