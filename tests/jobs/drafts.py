"""Drafts as a form edits them."""

from jobs.submit import forms
from jobs.submit.draft import Draft


def edit(text, **changes):
    """The draft after these inputs were changed; `__` stands for the dots of their names."""
    draft = Draft(text)
    shown = forms.read(draft)
    forms.merge(draft, shown, {**shown, **{key.replace("__", "."): value for key, value in changes.items()}})
    return draft
