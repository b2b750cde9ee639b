"""Persistent volumes: what claims ask, what there is, and where it can be had."""
