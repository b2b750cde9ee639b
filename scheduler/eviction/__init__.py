"""Making room by eviction: the smallest set of victims on a node, and the node where it costs least."""
