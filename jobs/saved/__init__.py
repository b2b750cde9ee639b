"""Views of the job list that people keep: filters, order, grouping and columns under a name, for themselves or for all."""
