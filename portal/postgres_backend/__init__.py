"""PostgreSQL, as Django has it, but for what a migration leaves behind."""
