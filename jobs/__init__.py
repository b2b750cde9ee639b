"""Jobs: manifests, the life cycle and its controllers, what people do to them, and their rows, pages and API."""
