"""Samples from before their moments were kept get these, as a run of which nothing but the samples is known."""

from django.db import migrations


def add(apps, schema_editor):
    samples, moments = apps.get_model("queues", "QueueSample"), apps.get_model("queues", "SampleTime")
    known = set(moments.objects.values_list("at", flat=True))
    found = samples.objects.order_by("at").values_list("at", flat=True).distinct()
    moments.objects.bulk_create((moments(at=at, run=0) for at in found.iterator() if at not in known), batch_size=500)


class Migration(migrations.Migration):

    dependencies = [
        ("queues", "0004_asked_is_kept_too"),
    ]

    operations = [
        migrations.RunPython(add, migrations.RunPython.noop),
    ]
