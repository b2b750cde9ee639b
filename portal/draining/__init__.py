"""Closing a queue, emptying it, and only then deleting it."""
