"""Moved to `testbed/`."""

from testbed.kubelet import *  # noqa: F403
