"""Flows: several jobs, made from templates one after another as they depend on each other (`flow.volcano.sh`)."""
