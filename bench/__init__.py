"""Measures of Basalt, each a module that prints a table; `bench/README.md` lists them. None of them is a timed test."""
