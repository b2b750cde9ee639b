"""Every text that a person can read has a translation, and the extraction finds texts where they hide."""

import io

from babel.messages.extract import extract

from portal import translations

TEMPLATE = b"""{% load i18n %}
<p title="{% translate "One (two) three" %}">{{ _("four") }}
{% blocktranslate count n=x with y=z trimmed %}
  {{ n }} job (of {{ y }})
{% plural %}
  {{ n }} jobs
{% endblocktranslate %} {% translate "May" context "month" %}</p>
"""


def test_texts_of_a_template_are_found_with_brackets_plurals_and_contexts():
    found = [
        (m, c) for _, m, _, c in extract(translations.extract_template, io.BytesIO(TEMPLATE), keywords=translations.KEYWORDS)
    ]
    assert found == [
        ("One (two) three", None),
        ("four", None),
        (("%(n)s job (of %(y)s)", "%(n)s jobs"), None),
        ("May", "month"),
    ]


def test_no_text_lacks_its_chinese_translation():
    template = translations.messages()
    (catalog,) = translations.catalogs()
    assert translations.untranslated(translations._read(catalog), template) == []
