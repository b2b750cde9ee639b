"""The pages of jobs: the list, its filters and export, one job with its timeline and pods."""
