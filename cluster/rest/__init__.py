"""The frame of the REST API, the same for every app: views by kind, pages by cursor, bodies, problems, repeated requests."""
