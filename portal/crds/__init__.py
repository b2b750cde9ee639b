"""CustomResourceDefinitions of every kind that Basalt owns, made from the same shapes that admission checks."""
