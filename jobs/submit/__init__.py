"""The submit page: a form and YAML over one draft, its checks and its preview."""
