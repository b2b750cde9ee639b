"""`/api/v1/about`: what a program asks first: which Basalt this is, for whom it answers, and what time it is there."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cluster import runtime

VERSION = "0.1.0"
VOLCANO_API = "v1alpha1"


class AboutRow(serializers.Serializer[Any]):
    """`now` is the cluster's own time, which may run faster than the wall clock: ages are counted from it."""

    version = serializers.CharField()
    volcano_api = serializers.CharField(help_text="of Volcano's Job")
    cluster = serializers.CharField(help_text="embedded or kubernetes")
    user = serializers.CharField()
    is_staff = serializers.BooleanField()
    now = serializers.DateTimeField()


class About(APIView):
    """Version, user and time."""

    permission_classes = (IsAuthenticated,)

    @extend_schema(responses=AboutRow)
    def get(self, request: Request) -> Response:
        """Also whether a token still holds."""
        return Response(
            {
                "version": VERSION,
                "volcano_api": VOLCANO_API,
                "cluster": settings.BASALT_CLUSTER,
                "user": request.user.get_username(),
                "is_staff": bool(request.user.is_staff),
                "now": runtime.now().isoformat(),
            }
        )
