"""`labelSelector` of lists, in kubectl's grammar, over the JSON column of labels that projected rows have."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.forms import CharField
from django.utils.translation import gettext as _

from cluster.said import told, words
from cluster.selectors import Selector, parse_selector


class SelectorField(CharField):
    """A label selector as text; a faulty one is refused with the part at fault."""

    def clean(self, value: Any) -> Selector | None:
        text = super().clean(value)
        try:
            found = parse_selector(text)
        except ValueError as error:
            raise ValidationError(words(told(error))) from None
        for requirement in found.requirements:
            if requirement.operator in ("Gt", "Lt"):
                raise ValidationError(_("labels are compared by =, !=, in, notin, key and !key"))
        return found if found.requirements else None


class LabelSelectorFilter(filters.Filter):  # type: ignore[misc]
    """Rows whose labels fulfil all conditions of a selector."""

    field_class = SelectorField

    def filter(self, qs: QuerySet[Any], value: Selector | None) -> QuerySet[Any]:
        if not value:
            return qs
        for number, requirement in enumerate(value.requirements):
            name = f"label_{number}"
            has, fits = Q(**{f"{name}__isnull": False}), Q(**{f"{name}__in": requirement.values})
            condition = {"In": has & fits, "NotIn": ~has | ~fits, "Exists": has, "DoesNotExist": ~has}[requirement.operator]
            qs = qs.alias(**{name: Cast(KeyTextTransform(requirement.key, "labels"), TextField())}).filter(condition)
        return qs
