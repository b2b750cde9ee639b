"""Cycles of the scheduler over files of Kubernetes objects: no cluster, no database."""

from portal.dryrun.reading import FilesError, Source, read
from portal.dryrun.run import Result, run

__all__ = ["FilesError", "Result", "Source", "read", "run"]
