"""Policies for the tests of drains."""

from jobs.models import Job, Pod
from portal.policy import StaffPolicy


class OfOneRack(StaffPolicy):
    """Everybody may change node n0."""

    def may(self, user, action, obj=None):
        return super().may(user, action, obj) or (action == "nodes.change" and getattr(obj, "name", "n0") == "n0")


class OwnJobs(StaffPolicy):
    """Even staff sees its own jobs and their pods alone."""

    def visible(self, user, queryset):
        found = super().visible(user, queryset)
        if queryset.model is Job:
            return found.filter(owner=user.get_username())
        if queryset.model is Pod:
            return found.filter(job_uid__in=Job.objects.filter(owner=user.get_username()).values("pk"))
        return found

    def rights(self, user):
        return f"own:{user.get_username()}"
