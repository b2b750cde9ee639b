"""Moved to `testbed/`."""

from testbed.server import *  # noqa: F403
