"""What runs outside Basalt's process: the zygote, the pods' supervisors and the containers' inits.

Standard library only and single-threaded: these are forked by the hundred, and must start in no time.
"""
