"""Blueprints: jobs to fill out. Parameters with a schema, fields that are locked, versions that never change."""
