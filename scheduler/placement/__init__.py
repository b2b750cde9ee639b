"""Choosing nodes: a standing of each class of tasks, the ladder for equal ones, one by one where pods look at each other."""
