"""How the GPUs of a machine are linked: tables of `nvidia-smi topo -m` and `rocm-smi --showtopo`, read and written.

Read by columns, never by width, since white space differs between drivers. Old names are made new (`SOC` is `SYS`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from cluster.said import said

SELF = "X"
_GPU = re.compile(r"GPU([0-9]{1,4})")
_NVIDIA_LINK = re.compile(r"NV[1-9][0-9]{0,2}|PIX|PXB|PHB|NODE|SYS|SOC")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RULED = re.compile(r"=+ *(?P<title>[A-Za-z ]*?) *=+")
_LONGEST_TEXT = 262_144
_MOST_GPUS = 64


class TopologyError(ValueError):
    """A table that cannot be read; the message names the line and says what would be right."""


@dataclass(frozen=True, slots=True)
class GpuTopology:
    """`links[a][b]` is the path between GPUs a and b: `X` on the diagonal, else `NV4`, `PIX`, `PXB`, `PHB`, `NODE`,
    `SYS`, `XGMI` or `PCIE`; symmetric. `cpus` and `numa` are per GPU and may be empty; `nics` maps a network card to
    its path to each GPU."""

    links: tuple[tuple[str, ...], ...]
    cpus: tuple[str, ...] = ()
    numa: tuple[str, ...] = ()
    nics: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def gpus(self) -> int:
        """How many GPUs."""
        return len(self.links)

    @property
    def kinds(self) -> frozenset[str]:
        """The paths that occur between GPUs."""
        return frozenset(link for row in self.links for link in row) - {SELF}


def parse_topology(text: str) -> GpuTopology:
    """The topology that a tool printed. Raises TopologyError."""
    if len(text) > _LONGEST_TEXT:
        raise TopologyError(
            said(
                "a topology table has at most %(most)s characters, this text has %(count)s",
                most=_LONGEST_TEXT,
                count=len(text),
            )
        )
    lines = [(number, _ESCAPES.sub("", line).rstrip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    if any(_RULED.fullmatch(line.strip()) for _, line in lines):
        return _checked(_parse_rocm(lines))
    for position, (_, line) in enumerate(lines):
        if _GPU.match(line.strip()):
            return _checked(_parse_nvidia(lines[position:]))
    raise TopologyError(said("there is no table: expected the output of `nvidia-smi topo -m` or `rocm-smi --showtopo`"))


def _fail(number: int, message: str) -> NoReturn:
    raise TopologyError(said("line %(number)s: %(message)s", number=number, message=message))


def _parse_nvidia(lines: Sequence[tuple[int, str]]) -> GpuTopology:
    number, header = lines[0]
    devices = re.split(r"\s+(?:CPU|NUMA|GPU) ", header)[0].split()
    gpus = _numbered([device for device in devices if _GPU.fullmatch(device)], number)
    paths: dict[str, list[str]] = {}
    cpus, numa = [], []
    for number, line in lines[1:]:
        name = line.split()[0]
        if name not in devices:
            break  # the legend
        if name in paths:
            _fail(number, said("%(name)s has a second row", name=name))
        cells = line.split()[1:]
        if len(cells) < len(devices):
            _fail(
                number,
                said(
                    "%(name)s has %(columns)s columns, and the table has %(devices)s devices",
                    name=name,
                    columns=len(cells),
                    devices=len(devices),
                ),
            )
        paths[name] = [_nvidia_link(cell, name, device, number) for cell, device in zip(cells, devices)]
        if _GPU.fullmatch(name):
            rest = cells[len(devices) :]
            cpus.append(rest[0] if rest else "")
            numa.append(rest[1] if len(rest) > 1 else "")
    names = [f"GPU{index}" for index in range(gpus)]
    for name in names:
        if name not in paths:
            _fail(number, said("the table ends without a row for %(name)s", name=name))
    columns = [devices.index(name) for name in names]
    return GpuTopology(
        links=tuple(tuple(paths[name][column] for column in columns) for name in names),
        cpus=tuple(cpus) if any(cpus) else (),
        numa=tuple(numa) if any(numa) else (),
        nics=tuple(
            (device, tuple(paths[name][devices.index(device)] for name in names)) for device in devices if device not in names
        ),
    )


def _nvidia_link(cell: str, row: str, column: str, number: int) -> str:
    if row == column:
        return (
            SELF
            if cell == SELF
            else _fail(number, said("%(gpu)s to itself is %(right)s, not %(cell)r", gpu=row, right=SELF, cell=cell))
        )
    if not _NVIDIA_LINK.fullmatch(cell):
        _fail(
            number,
            said(
                "%(cell)r between %(row)s and %(column)s is no path: NV1, NV2 …, PIX, PXB, PHB, NODE or SYS",
                cell=cell,
                row=row,
                column=column,
            ),
        )
    return "SYS" if cell == "SOC" else cell


def _parse_rocm(lines: Sequence[tuple[int, str]]) -> GpuTopology:
    """The block of link types; weights and hops say nothing more about which GPUs are close."""
    block: list[tuple[int, str]] = []
    inside = False
    for number, line in lines:
        if ruled := _RULED.fullmatch(line.strip()):
            inside = ruled["title"].lower().startswith("link type")
        elif inside:
            block.append((number, line))
    if not block:
        raise TopologyError(said("the table has no block 'Link Type between two GPUs', which `rocm-smi --showtopo` prints"))
    number, header = block[0]
    gpus = _numbered(header.split(), number)
    rows: list[tuple[str, ...]] = []
    for number, line in block[1:]:
        name, *cells = line.split()
        if name != f"GPU{len(rows)}":
            break
        if len(cells) != gpus:
            _fail(
                number,
                said(
                    "%(name)s has %(columns)s columns, and the table has %(gpus)s GPUs", name=name, columns=len(cells), gpus=gpus
                ),
            )
        rows.append(tuple(_rocm_link(cell, len(rows), column, number) for column, cell in enumerate(cells)))
    if len(rows) != gpus:
        _fail(number, said("expected a row for GPU%(count)s", count=len(rows)))
    return GpuTopology(links=tuple(rows))


def _rocm_link(cell: str, row: int, column: int, number: int) -> str:
    if row == column:
        return SELF if cell == "0" else _fail(number, said("GPU%(gpu)s to itself is 0, not %(cell)r", gpu=row, cell=cell))
    if cell not in ("XGMI", "PCIE"):
        _fail(
            number,
            said(
                "%(cell)r between GPU%(row)s and GPU%(column)s is no link type: XGMI or PCIE", cell=cell, row=row, column=column
            ),
        )
    return cell


def _numbered(names: Sequence[str], number: int) -> int:
    """How many GPUs a header names; they are numbered from 0 without a gap."""
    if not names or list(names) != [f"GPU{index}" for index in range(len(names))]:
        _fail(number, said("the header names %(names)s: expected GPU0, GPU1 … in order", names=" ".join(names[:8]) or "no GPU"))
    if len(names) > _MOST_GPUS:
        _fail(number, said("at most %(most)s GPUs are read, this table has %(count)s", most=_MOST_GPUS, count=len(names)))
    return len(names)


def _checked(topology: GpuTopology) -> GpuTopology:
    for a, row in enumerate(topology.links):
        for b in range(a):
            if row[b] != topology.links[b][a]:
                raise TopologyError(
                    said(
                        "GPU%(a)s to GPU%(b)s is %(there)s, and the way back is %(back)s: these must agree",
                        a=a,
                        b=b,
                        there=row[b],
                        back=topology.links[b][a],
                    )
                )
    return topology


def format_topology(topology: GpuTopology) -> str:
    """The GPU part as `nvidia-smi topo -m` would print it; `parse_topology` reads it back."""
    names = [f"GPU{index}" for index in range(topology.gpus)]
    tail = [title for title, column in (("CPU Affinity", topology.cpus), ("NUMA Affinity", topology.numa)) if column]
    lines = ["\t".join(["", *names, *tail])]
    for index, row in enumerate(topology.links):
        cells = [" X " if link == SELF else link for link in row]
        lines.append("\t".join([names[index], *cells, *(column[index] for column in (topology.cpus, topology.numa) if column)]))
    return "\n".join(lines) + "\n"


def from_pairs(gpus: int, pairs: dict[tuple[int, int], str], otherwise: str, *, sockets: Sequence[str] = ()) -> GpuTopology:
    """A topology from the paths of some pairs (a < b) and one path for the rest; `sockets` are CPU lists, GPUs split evenly."""
    links = tuple(
        tuple(SELF if a == b else pairs.get((min(a, b), max(a, b)), otherwise) for b in range(gpus)) for a in range(gpus)
    )
    seat = [index * len(sockets) // gpus for index in range(gpus)] if sockets else []
    return GpuTopology(links, cpus=tuple(sockets[s] for s in seat), numa=tuple(str(s) for s in seat))
