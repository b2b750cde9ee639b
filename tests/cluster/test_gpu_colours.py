"""States of GPUs stay apart for who sees fewer colours: fills of cells that are too small for a mark, and the load ramp.

Colours are those of the tokens; colour blindness is simulated by the matrices of Machado, Oliveira and Fernandes (2009) in
linear light, and distances are CIE76 in L*a*b* under D65.
"""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "static" / "css" / "tokens.css"
SIGHTS = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
FILLS = {
    "allocated": "--gpu-a", "shared": "--gpu-b", "idle": "--gs-idle", "free": "--ba-track", "reserved": "--gs-reserved",
    "releasing": "--st-terminating", "unhealthy": "--st-failed", "cordoned": "--gs-cordoned", "not_ready": "--st-pending",
    "unknown": "--gs-unknown",
}  # fmt: skip
Colour = tuple[float, float, float]


def tokens(theme: str) -> dict[str, str]:
    blocks = re.split(r"\[data-bs-theme=dark\]", TOKENS.read_text("utf-8"))
    return dict(re.findall(r"(--[a-z0-9-]+):\s*(#[0-9a-f]{3,6})\b", blocks[theme == "dark"]))


def lab(colour: str, sight: str) -> Colour:
    digits = colour.removeprefix("#")
    digits = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
    light = [_linear(int(digits[at : at + 2], 16) / 255) for at in (0, 2, 4)]
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in SIGHTS[sight])
    x = _root((0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047)
    y = _root(0.2126729 * red + 0.7151522 * green + 0.0721750 * blue)
    z = _root((0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _root(part: float) -> float:
    return part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116


def distance(a: str, b: str, sight: str) -> float:
    return float(sum((p - q) ** 2 for p, q in zip(lab(a, sight), lab(b, sight), strict=True)) ** 0.5)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_no_two_states_look_alike(theme: str, sight: str) -> None:
    colours = tokens(theme)
    near = {
        (a, b): round(found, 1)
        for a, b in combinations(FILLS, 2)
        if (found := distance(colours[FILLS[a]], colours[FILLS[b]], sight)) < 12
    }
    assert near == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_load_ramp_goes_one_way_in_lightness(theme: str, sight: str) -> None:
    colours = tokens(theme)
    steps = [lab(colours[f"--rp-{at}"], sight)[0] for at in range(7)]
    assert all(a - b > 4 for a, b in pairwise(steps if theme == "light" else steps[::-1]))


def test_distances_are_those_of_the_formula() -> None:
    assert distance("#000", "#fff", "all colours") == pytest.approx(100, abs=0.01)
    assert distance("#cf4313", "#86603a", "all colours") > distance("#cf4313", "#86603a", "deuteranopia")
