"""The process runtime: a kubelet that runs each container's command as a process of this machine.

    kubelet ── one socket a pod ──► supervisor of the pod ──► init of a container ──► the program
       └──── starts ──► zygote ── forks ──┘

The kubelet (`kubelet.py`, with the pods' lives in `lives.py`) lives in Basalt's own process. The zygote is a small Python
that was loaded once; from it each pod's supervisor is forked, in a mount namespace of its own. Every one of them ends
with its parent, whatever ends that, and takes along what it started.
"""
