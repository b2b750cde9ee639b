"""The scheduler's cockpit: what each cycle did and cost, the configuration, snapshots, and a sandbox for what-if questions."""
