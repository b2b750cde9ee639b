"""One action on many jobs: previewed, then done in a few bulk writes, with an outcome for each job; it outlives a restart."""
