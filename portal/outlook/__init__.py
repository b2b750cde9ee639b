"""When waiting jobs start, and how a draft or a change would move that: futures of the cluster as it is and as it would be."""
