"""The cluster: the port to it, one that lives in this process, and its nodes, GPUs and network domains as rows and pages."""
