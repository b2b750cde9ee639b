"""Policies for the tests of drains."""

from cluster.models import Node
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


class OneNode(StaffPolicy):
    """Who is no staff sees node n0 alone."""

    def visible(self, user, queryset):
        found = super().visible(user, queryset)
        return found if user.is_staff or queryset.model is not Node else found.filter(name="n0")

    def rights(self, user):
        return super().rights(user) if user.is_staff else "n0"
