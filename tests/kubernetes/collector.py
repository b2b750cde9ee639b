"""Moved to `testbed/`."""

from testbed.collector import *  # noqa: F403
