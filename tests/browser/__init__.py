"""Tests in a real browser, against a server that they start."""
