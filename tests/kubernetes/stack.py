"""Moved to `testbed/`."""

from testbed.stack import *  # noqa: F403
