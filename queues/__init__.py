"""Queues: their tree and rules, the controller, what people do to them, and their rows, pages and API."""
