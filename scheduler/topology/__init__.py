"""Which GPUs of a node, and which part of the network."""
