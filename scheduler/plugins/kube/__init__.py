"""What Kubernetes's default scheduler knows of pods and nodes, as vectors over nodes.

Pure: arrays, dicts and numbers in, arrays out. The plugins `predicates` and `nodeorder` put them to work.
"""
