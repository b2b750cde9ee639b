"""Template tags of the frame: state marks, amounts with their unit, durations and instants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import localize
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from cluster import display, runtime
from cluster.access import policy
from cluster.models import Event
from cluster.said import Said
from cluster.said import words as in_words
from jobs.pages.podgrid import Cell, Row, Stretch
from portal import figures, processes, states, words
from portal.preferences import of as preferences_of
from portal.reach import reach
from portal.timezones import offset_of
from queues.colours import categories
from queues.models import Queue

register = template.Library()


@register.simple_tag(takes_context=True)
def current(context: Context, *view_names: str) -> SafeString:
    """`aria-current="page"` when the page shown is one of `view_names` (a trailing `:` means the whole namespace)."""
    request: HttpRequest | None = context.get("request")
    match = request.resolver_match if request else None
    if match is None:
        return SafeString("")
    here = match.view_name
    hit = any(here == name or (name.endswith(":") and here.startswith(name)) for name in view_names)
    return SafeString('aria-current="page"') if hit else SafeString("")


@register.filter
def theme(value: str | None) -> str:
    """A theme cookie as a theme that exists; empty when the browser's own wish decides."""
    return value if value in ("light", "dark") else ""


@register.simple_tag
def runs_commands() -> list[str] | None:
    """What pods have to do without where their commands run on this machine; None where nothing runs here."""
    return [processes.in_words(lack) for lack in runtime.missing()] if runtime.runs_commands() else None


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of the sprite (`ic-…`); with a label it is an image, without one it is decoration."""
    if label:
        return format_html('<svg class="i" role="img" aria-label="{}"><use href="#ic-{}"/></svg>', label, name)
    return format_html('<svg class="i" aria-hidden="true"><use href="#ic-{}"/></svg>', name)


@register.simple_tag
def mark(name: str) -> SafeString:
    """A state mark alone, for where the word is beside it already."""
    return format_html('<svg class="g" aria-hidden="true"><use href="#st-{}"/></svg>', name)


@register.simple_tag
def state(phase: str, mark: str = "", strong: bool = False, word: str = "") -> SafeString:
    """A state: its mark and its word. `phase` is a job's, pod's or PodGroup's phase, `mark` the mark when it differs."""
    shown = states.mark_of(phase, mark)
    return format_html(
        '<span class="ba-st{}" data-st="{}"><svg class="g" aria-hidden="true"><use href="#st-{}"/></svg>'
        "<span data-word>{}</span></span>",
        " strong" if strong else "",
        shown,
        shown,
        word or states.word_of(phase, shown),
    )


@register.filter
def amount(units: int | str | None, resource: str = "") -> SafeString:
    """An amount in smallest units (`cpu` milli, `memory` bytes, others milli-units) with its unit set small.

    A dash for what is not known; so templates say it of a key that is missing: by an empty text.
    """
    if units is None or isinstance(units, str):
        return SafeString("–")
    number, unit = display.amount(units, resource)
    return format_html('{}<span class="u">{}</span>', number, unit) if unit else SafeString(number)


@register.filter
def gpu_indices(indices: Sequence[int] | None) -> str:
    """GPU indices as runs, `0–3,6`; empty for none."""
    return display.runs(indices or ())


@register.filter
def number(value: float | None) -> str:
    """A whole number or fraction with the language's digit groups; a dash for what is not known."""
    return "–" if value is None else display.number(value)


@register.filter
def hours(value: float) -> str:
    """Hours of something: two decimals below ten, so that a short job is not called nothing."""
    return "–" if not value else localize(round(value, 2), use_l10n=True) if value < 10 else display.number(value)


@register.simple_tag
def counted(field: str, value: int) -> SafeString:
    """A figure with its word, singular or plural, that the live channel keeps current."""
    one, many = words.counted()[field]
    text = (one if value == 1 else many) % {"n": display.number(value)}
    return format_html('<span data-field="{}" data-as="count" data-one="{}" data-many="{}">{}</span>', field, one, many, text)


@register.simple_tag
def gpu(count: float | None, model: str = "") -> SafeString:
    """GPUs with their model: `64 H100`; a dash when none are asked."""
    if not count:
        return SafeString('<span class="ink3">–</span>')
    return format_html('{} <span class="ink3">{}</span>', display.number(count), display.short_model(model))


@register.filter
def duration(value: float | timedelta | None) -> str:
    """Seconds or a timedelta in words: `40 s`, `38 min`, `1 h 01`, `2 d 03`."""
    return "–" if value is None else display.duration(value)


@register.simple_tag
def since(moment: datetime | None, until: datetime | None = None) -> SafeString:
    """How long ago `moment` was. It goes on counting in the browser, unless `until` ends it."""
    if moment is None:
        return SafeString("–")
    words_ = display.duration(((until or runtime.now()) - moment).total_seconds())
    if until is not None:
        return format_html("<span>{}</span>", words_)
    return format_html('<time datetime="{}" data-since>{}</time>', moment.isoformat(), words_)


@register.simple_tag
def at(moment: datetime | None, form: str = "auto") -> SafeString:
    """An instant in the reader's zone: `time` 14:02:18, `auto` adds the day when it is not today; `minute` alike, shorter."""
    if moment is None:
        return SafeString("–")
    local = timezone.localtime(moment)
    text = local.strftime("%H:%M" if form == "minute" else "%H:%M:%S")
    if form != "time" and local.date() != timezone.localdate():
        text = f"{local:%m-%d} {text}" if form == "minute" else f"{local:%Y-%m-%d} {text}"
    title = f"{local:%Y-%m-%d %H:%M:%S} {offset_of(local)}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), title, text)


@register.simple_tag
def told(event: Event) -> str:
    """What an event says in the reader's language; one that is foreign to us as it was written, and marked as English."""
    sentence = event.sentence
    if isinstance(sentence, Said) or get_language() == "en":
        return in_words(sentence)
    return format_html('<span lang="en">{}</span>', sentence)


@register.simple_tag
def condition(message: str | None) -> str:
    """What a condition of an object says: in the reader's language where it is a fixed text of ours, else as it was written."""
    found = _(message) if message else ""
    return found if found != message or get_language() == "en" else format_html('<span lang="en">{}</span>', found)


@register.simple_tag
def zone() -> str:
    """The reader's time zone now, as its distance from UTC."""
    return offset_of(timezone.localtime())


@register.simple_tag(takes_context=True)
def density(context: Context) -> str:
    """How high the rows of lists are, by the reader's own wish; empty for the usual."""
    request = context.get("request")
    return str(preferences_of(request).get("density", "")) if request is not None else ""


@register.simple_tag
def away_since() -> datetime | None:
    """Since when the cluster does not answer; None while it does."""
    return reach.away_since


@register.simple_tag
def js_words() -> SafeString:
    """What the scripts say, in the page's language, as a JSON block."""
    return json_script(words.for_scripts(), "ba-words")


@register.simple_tag(takes_context=True)
def queue_colours(context: Context) -> SafeString:
    """The categories of the queues that the reader may see, as a JSON block for `colours.js`."""
    rows = policy().visible(context["request"].user, Queue.objects.filter(deleted_at=None)).only("name", "parent", "created_at")
    return json_script(categories(list(rows)), "queue-colours")


@register.filter
def percent(part: float | None, whole: float | None) -> str:
    """`part` of `whole` as a CSS percentage, at most 100."""
    if not part or not whole or part < 0 or whole < 0:
        return "0%"
    return f"{min(100.0, 100 * part / whole):.2f}%"


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: Any) -> str:
    """The page's query string with some keys changed (None removes one) and the page number dropped."""
    data = context["request"].GET.copy()
    data.pop("page", None)
    data.pop("after", None)
    for key, value in changes.items():
        data.pop(key, None)
        if value not in (None, ""):
            data[key] = localize(value) if isinstance(value, float) else str(value)
    encoded = data.urlencode()
    return f"?{encoded}" if encoded else "?"


@register.simple_tag(takes_context=True)
def group_query(context: Context, dimension: str, value: str) -> str:
    """The list of the jobs of one group, from the list that shows the groups."""
    data = context["request"].GET.copy()
    for name in ("group", "sort", "page", "view"):
        data.pop(name, None)
    data[dimension] = value
    return f"?{data.urlencode()}"


@register.filter
def get(values: dict[str, Any], key: str) -> Any:
    """A value by a key that is worked out; empty where there is none."""
    return values.get(key, "")


@register.inclusion_tag("includes/health.html")
def cluster_health() -> dict[str, figures.Health]:
    """The top bar's word on the machines."""
    return {"health": figures.health()}


@register.simple_tag(takes_context=True)
def sort_header(context: Context, name: str, label: str, now: str, classes: str = "") -> SafeString:
    """A column's head that sorts by `name`, and the other way round when it does already."""
    backwards = now == name
    order = {name: "ascending", f"-{name}": "descending"}.get(now)
    return format_html(
        '<th{}{}><a href="{}">{}</a></th>',
        format_html(' class="{}"', classes) if classes else "",
        format_html(' aria-sort="{}"', order) if order else "",
        query(context, sort=f"-{name}" if backwards else name),
        label,
    )


@register.filter
def css(value: float) -> str:
    """A number as CSS wants it, whatever the language's decimal mark is."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


@register.filter
def epoch(moment: datetime) -> str:
    """Seconds since 1970 for scripts, as a plain decimal number in every language."""
    return f"{moment.timestamp():.3f}"


@register.simple_tag
def stamp(text: str | None) -> SafeString:
    """A Kubernetes time stamp (RFC 3339) as an instant; what is none is shown as it is."""
    moment = parse_datetime(text) if isinstance(text, str) and text else None
    if moment is None or moment.tzinfo is None:
        return format_html("{}", text or "–")
    return at(moment)


@register.simple_tag
def pod_cells(row: Row) -> SafeString:
    """The cells of one task: with the node's name while there are few, small marks when there are many."""
    parts = [_roomy(cell) if row.is_roomy else _small(cell) for cell in row.cells]
    kind = "cells" if row.is_roomy else "cells many"
    return format_html('<div class="{}" data-task="{}">{}</div>', kind, row.name, SafeString("".join(parts)))


@register.simple_tag
def pod_counts(row: Row) -> str:
    """How many pods of a large job's task are in which state."""
    return " · ".join(f"{display.number(stretch.pods)} {stretch.phase.label}" for stretch in row.stretches)


@register.simple_tag
def pod_stretches(row: Row) -> SafeString:
    """A task of a large job: marks by state, each for many pods, and how many pods are in which state."""
    marks = "".join(_stretch(stretch) for stretch in row.stretches)
    said = pod_counts(row)
    each = ngettext("one mark a pod", "one mark for %(n)s pods", row.each) % {"n": display.number(row.each)}
    return format_html(
        '<div><div class="cells many" aria-hidden="true">{}</div><small class="ink3">{} ({})</small></div>',
        SafeString(marks),
        said,
        each,
    )


def _stretch(stretch: Stretch) -> str:
    number, word = display.number(stretch.pods), stretch.phase.label
    one = format_html('<i data-st="{}" title="{} {}"></i>', stretch.phase.mark, number, word)
    return one * stretch.marks


def _roomy(cell: Cell) -> str:
    pod = cell.pod
    node = pod.node if pod and pod.node else _("no node")
    gpus = display.runs(pod.gpus) if pod and pod.gpus else ""
    title = "\n".join(filter(None, (pod.name if pod else "", node, pod.reason if pod else "")))
    return format_html(
        '<span class="ba-pod{}" data-st="{}" data-index="{}" data-uid="{}" title="{}"><b>{}<small data-gpus>{}</small>'
        '<svg class="g" aria-hidden="true"><use href="#st-{}"/></svg></b><span class="clip" data-node>{}</span>'
        '<span class="vh" data-word>{}</span></span>',
        " no" if cell.is_missing else "",
        cell.mark,
        cell.index,
        pod.uid if pod else "",
        title,
        cell.index,
        gpus,
        cell.mark,
        link_to("cluster:node", node, "ink2") if pod and pod.node else node,
        states.word_of(pod.phase if pod else "Pending", cell.mark),
    )


def _small(cell: Cell) -> str:
    pod = cell.pod
    title = f"{cell.index} {pod.node}" if pod and pod.node else str(cell.index)
    return format_html(
        '<i data-st="{}" data-index="{}" data-uid="{}" title="{}"{}></i>',
        cell.mark,
        cell.index,
        pod.uid if pod else "",
        title,
        SafeString(' class="no"') if cell.is_missing else "",
    )


@register.simple_tag
def link_to(view: str, name: str, classes: str = "") -> SafeString:
    """A link to the page of a thing named `name`; plain text when the name is none that has a page."""
    try:
        url = reverse(view, args=(name,))
    except NoReverseMatch:
        return format_html('<span class="{}">{}</span>', classes, name)
    return format_html('<a class="{}" href="{}">{}</a>', classes, url, name)


@register.simple_tag
def speed() -> str:
    """How much faster than the wall's time the cluster's runs, `60`; empty when it does not."""
    found = f"{runtime.speed():g}"
    return "" if found == "1" else found


@register.simple_tag
def clock() -> SafeString:
    """Attributes that tell scripts the cluster's present instant, how fast its clock runs, and whose clock times are shown by."""
    zone = timezone.get_current_timezone_name()
    return format_html('data-now="{}" data-speed="{}" data-zone="{}"', epoch(runtime.now()), f"{runtime.speed():g}", zone)
