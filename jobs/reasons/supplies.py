"""Why a job waits for volumes or devices, in words: what `reasons` says of the verdicts of claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduler.framework.explain import Code

Form = Callable[[Mapping[str, Any]], str]

SHORT: dict[str, Form] = {
    Code.VOLUME_MISSING: lambda v: _("Volume claim %(resource)s does not exist"),
    Code.VOLUME_UNBOUND: lambda v: _("Volume claim %(resource)s has no volume yet"),
    Code.VOLUME_LOST: lambda v: _("Volume claim %(resource)s has lost its volume"),
    Code.VOLUME_LEAVING: lambda v: _("Volume claim %(resource)s is being deleted"),
    Code.VOLUME_FOREIGN: lambda v: _("Volume claim %(resource)s belongs to another pod"),
    Code.DEVICE_CLAIM_MISSING: lambda v: _("Resource claim %(resource)s does not exist yet"),
    Code.DEVICE_CLAIM_LEAVING: lambda v: _("Resource claim %(resource)s is being deleted"),
    Code.DEVICE_CLAIM_FOREIGN: lambda v: _("Resource claim %(resource)s belongs to another pod"),
    Code.DEVICE_CLASS_MISSING: lambda v: _("Device class %(resource)s does not exist"),
    Code.DEVICE_SELECTOR: lambda v: _("No device of class %(resource)s is what its claim selects"),
    Code.DEVICES_INSUFFICIENT: lambda v: _("Its pod asks %(asked)s, the best node has %(free_bare)s free"),
    Code.DEVICE_QUOTA: lambda v: _("Queue limit of devices: asks %(asked)s, %(free_bare)s of %(limit_bare)s left"),
}

LONG: dict[str, Form] = {
    Code.VOLUME_UNBOUND: lambda v: _(
        "Volume claim %(resource)s is to be bound before its pods are placed, and no volume was found for it."
    ),
    Code.DEVICES_INSUFFICIENT: lambda v: _("Needs %(asked)s on one node."),
    Code.DEVICE_QUOTA: lambda v: _("Queue %(queue)s may use %(limit)s at most and uses %(used_bare)s; this job asks %(asked)s."),
}

ADVICE: dict[str, Form] = {
    Code.VOLUME_MISSING: lambda v: _("Make the claim %(resource)s, or name another."),
    Code.VOLUME_UNBOUND: lambda v: _("Ask an administrator for a volume, or give the claim a storage class that makes them."),
    Code.VOLUME_LOST: lambda v: _("Delete the claim %(resource)s and make it anew."),
    Code.VOLUME_LEAVING: lambda v: _("Wait until %(resource)s is gone and make it anew, or name another."),
    Code.VOLUME_FOREIGN: lambda v: _("Rename the pod or the claim: a claim of this name is made for the pod."),
    Code.DEVICE_CLAIM_MISSING: lambda v: _("Make the claim or its template; a claim from a template is made by itself."),
    Code.DEVICE_CLAIM_LEAVING: lambda v: _("Wait until %(resource)s is gone and make it anew, or name another."),
    Code.DEVICE_CLAIM_FOREIGN: lambda v: _("Let each pod have its own claim, from a template."),
    Code.DEVICE_CLASS_MISSING: lambda v: _("Ask an administrator to make the device class %(resource)s, or name another."),
    Code.DEVICE_SELECTOR: lambda v: _("Compare the selectors of the claim with the devices that nodes publish."),
    Code.DEVICES_INSUFFICIENT: lambda v: _("Wait for room, or ask for fewer devices in each pod."),
    Code.DEVICE_QUOTA: lambda v: _("Wait until jobs in %(queue)s end, ask for less, or take another queue."),
}


def causes() -> dict[str, str]:
    """Why a node was ruled out."""
    return {
        "volume_in_use": _("Volume is in use by another pod"),
        "volume_limit": _("No more volumes can be attached"),
        "volume_zone": _("Volume is in another zone"),
        "volume_node": _("Volume cannot be reached"),
        "volume_capacity": _("Too little storage left"),
        "volume_bind": _("No volume for the claim"),
        "devices": _("Claimed devices are not to be had"),
    }
