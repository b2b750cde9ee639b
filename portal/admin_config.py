"""The admin as an installed app, with Basalt's own site."""

from django.contrib.admin.apps import AdminConfig


class BasaltAdminConfig(AdminConfig):
    """Makes `BasaltAdminSite` the default one."""

    default_site = "portal.admin_site.BasaltAdminSite"
