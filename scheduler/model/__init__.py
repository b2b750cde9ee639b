"""The scheduler's picture of the cluster: nodes as arrays, jobs, tasks, task classes and queues."""
