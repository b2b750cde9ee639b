"""Admission webhooks: the rules that a cluster of our own asks in its store, asked by a Kubernetes API server over TLS."""
