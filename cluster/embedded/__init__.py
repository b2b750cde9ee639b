"""The cluster inside this process: objects in memory and in a table, watches, and a simulated kubelet."""
