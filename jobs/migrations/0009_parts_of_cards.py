"""Which parts of cards a pod holds, and where one that waits is to have what others give up."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("jobs", "0008_log_tails")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="pod",
            name="cards",
            field=models.JSONField(default=list, help_text="its parts of cards: [UUID or index, MiB, percent of cores]"),
        ),
        migrations.AddField(
            model_name="pod",
            name="nominated",
            field=models.CharField(blank=True, help_text="node where it is to have what others give up", max_length=253),
        ),
    ]
