"""Logs of containers: how they are kept on disk, read, followed, made up for simulated pods, and let go."""
