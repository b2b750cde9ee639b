"""One concept has one Chinese word, as the glossary says; and Chinese is punctuated as Chinese is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal import translations

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "languages.md"
OTHERWISE = {
    "GPU, counted": r"(?!)",
    "ask for (resources)": r"(?!)",
    "job": r"\bjobs? (?:waits?|starts?)\b",
    "task": r"\btasks? (?:has|have) a node\b",
    "claim": r"\b(?:volume|resource) claims?\b",
    "suspend": r"\bsuspended\b",
    "draft": r"\bdrafts?\b",
}
"""What of a text calls for the word, where it is not just the English word."""
CHINESE = "一-鿿"
HALF = re.compile(rf"[{CHINESE}”）][,;:!?(]|[,;:!?)][{CHINESE}“]")
TIGHT = re.compile(rf"[{CHINESE}][A-Za-z0-9]|[A-Za-z0-9][{CHINESE}]")
PLACE = re.compile(r"%\(\w+\)[sdr]|%[sd]")
CODE = {
    "yes,no",
    "key=value:NoSchedule, one a line",
    "claim:/path, or +10Gi:/path for a new one",
    "Write each line as resource: amount, not %(line)s",
}
"""What people type, with the signs that are read."""


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """Of the glossary: the English word, the Chinese one, and those that are not to be used."""
    for line in GLOSSARY.read_text().partition("## Words")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] != "English" and not cells[0].startswith("---"):
            yield cells[0], cells[1], [each.strip() for each in cells[2].split(",") if each.strip()]


def entries() -> Iterator[tuple[str, str]]:
    (path,) = translations.catalogs()
    for message in translations._read(path):
        if message.id:
            ids = message.id if isinstance(message.id, tuple | list) else [message.id]
            texts = message.string if isinstance(message.string, tuple | list) else [message.string]
            yield from ((" / ".join(ids), text) for text in texts)


def test_the_glossary_has_words():
    assert len(list(rows())) > 20


@pytest.mark.parametrize(("english", "chinese", "wrong"), list(rows()), ids=[row[0] for row in rows()])
def test_one_word_is_used_for_one_concept(english: str, chinese: str, wrong: list[str]):
    calls = re.compile(
        OTHERWISE.get(english) or "|".join(rf"\b{word.strip()}(?:s|d|ed|ing)?\b" for word in english.split(",")), re.I
    )
    found = list(entries())
    assert [(text, said) for text, said in found if any(word in said for word in wrong)] == []
    assert [(text, said) for text, said in found if calls.search(PLACE.sub(" ", text)) and chinese not in said] == []


def test_chinese_is_punctuated_as_chinese():
    assert [(text, said) for text, said in entries() if text not in CODE and HALF.search(said)] == []


def test_a_space_stands_between_chinese_and_latin_letters():
    assert [(text, said) for text, said in entries() if TIGHT.search(PLACE.sub(" ", said))] == []
