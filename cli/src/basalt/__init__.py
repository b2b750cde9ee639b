"""Basalt from outside: a typed client of its REST API and live channel, and the command line made of it.

with Client("http://127.0.0.1:8000", token="…") as client:
    client.jobs.create(manifest)
    for job in client.jobs.list(phase=["Pending"]):
        print(job["name"], job["why"]["en"])
"""

from basalt.client import Client
from basalt.client.errors import (
    BasaltError,
    Conflict,
    Fault,
    Forbidden,
    NotFound,
    Refused,
    ServerFailed,
    SignedOut,
    Unreachable,
    Untrusted,
)

__version__ = "0.1.0"
__all__ = [
    "BasaltError", "Client", "Conflict", "Fault", "Forbidden", "NotFound", "Refused", "ServerFailed", "SignedOut", "Unreachable",
    "Untrusted",
]  # fmt: skip
