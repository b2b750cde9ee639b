"""REST: the way in (tokens), apply, and what holds the parts together: the OpenAPI document, its page, and 404 in our shape."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth import authenticate
from django.contrib.auth.decorators import login_required
from django.http import Http404
from django.urls import include, path, re_path
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from knox.views import LoginView, LogoutAllView, LogoutView
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, BasicAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import AnonRateThrottle
from rest_framework.views import APIView

from cluster import runtime
from cluster.api import urlpatterns as cluster_urls
from cluster.rest.idempotency import once
from cluster.rest.parsers import JSONParser
from cluster.rest.views import NAMESPACE, Manifest, is_dry_run, route
from cluster.said import said
from jobs.api import urlpatterns as jobs_urls
from jobs.blueprints.api import urlpatterns as blueprint_urls
from jobs.bulk.api import urlpatterns as bulk_urls
from jobs.cron.api import urlpatterns as cron_urls
from jobs.flows.api import urlpatterns as flow_urls
from jobs.logs.api import urlpatterns as logs_urls
from jobs.topology.api import urlpatterns as topology_urls
from portal.about import About
from portal.apply import apply
from portal.cockpit.api import urlpatterns as cockpit_urls
from portal.ledger import urlpatterns as ledger_urls
from portal.maintenance.api import urlpatterns as drain_urls
from portal.shares_api import urlpatterns as share_urls
from portal.simulations.api import urlpatterns as simulation_urls
from portal.unblock.api import urlpatterns as unblock_urls
from queues.api import urlpatterns as queues_urls


class PasswordAuthentication(BasicAuthentication):
    """Name and password, in the Authorization header or as JSON; wrong ones are counted and soon throttled."""

    def authenticate(self, request: Any) -> Any:
        if "Authorization" in request.headers:
            return super().authenticate(request)
        data = request.data if isinstance(request.data, dict) else {}
        name, password = data.get("username"), data.get("password")
        if not (isinstance(name, str) and isinstance(password, str)):
            return None
        return self.authenticate_credentials(name, password, request)

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> Any:
        http = getattr(request, "_request", request)
        user = authenticate(request=http, username=userid, password=password)
        if getattr(http, "axes_locked_out", False):
            raise Throttled(900, _("Too many wrong passwords; try again in fifteen minutes."))
        if user is None or not user.is_active:
            raise AuthenticationFailed(_("Wrong name or password."))
        return user, None


class LoginThrottle(AnonRateThrottle):
    """Sign-ins a minute from one address."""

    scope = "login"


class Credentials(serializers.Serializer[Any]):
    """What signs in; the Authorization header (Basic) does as well."""

    username = serializers.CharField()
    password = serializers.CharField()


class Token(serializers.Serializer[Any]):
    """A token, shown once: the portal keeps only its hash."""

    token = serializers.CharField()
    expiry = serializers.DateTimeField()


class Login(LoginView):
    """Give a token for a name and a password."""

    authentication_classes: ClassVar[list[type[BaseAuthentication]]] = [PasswordAuthentication]
    permission_classes = (IsAuthenticated,)
    parser_classes = (JSONParser,)
    throttle_classes = (LoginThrottle,)

    @extend_schema(request=Credentials, responses={200: Token}, auth=[])
    def post(self, request: Request, format: Any = None) -> Response:
        return super().post(request, format)


@extend_schema(request=None, responses={204: None})
class Logout(LogoutView):
    """End the token that asks."""


@extend_schema(request=None, responses={204: None})
class LogoutAll(LogoutAllView):
    """End all tokens of who asks."""


class Apply(APIView):
    """Create or change many objects at once: every document is tried before the first is written."""

    @extend_schema(request=Manifest(many=True), responses={200: OpenApiTypes.OBJECT}, parameters=[NAMESPACE])
    def post(self, request: Request) -> Response:
        dry_run = is_dry_run(request)
        namespace = request.query_params.get("namespace") or "default"

        def work() -> Response:
            results = apply(runtime.current(), request.data, user=request.user, dry_run=dry_run, namespace=namespace)
            return Response({"dryRun": dry_run, "results": [result.as_dict() for result in results]})

        return work() if dry_run else once(request, work)


class Nothing(APIView):
    """Addresses below /api/ that do not exist are refused in the API's own shape."""

    permission_classes = (AllowAny,)
    schema = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.args, self.kwargs = args, kwargs
        request = self.initialize_request(request, *args, **kwargs)
        self.request, self.headers = request, self.default_response_headers
        response = self.handle_exception(
            Http404(said("There is nothing at %(path)s; /api/docs/ says what there is.", path=request.path))
        )
        return self.finalize_response(request, response, *args, **kwargs)


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI document."""

    permission_classes = (IsAuthenticated,)


class DocsView(SpectacularSwaggerSplitView):
    """The OpenAPI document as a page, from our own files."""

    permission_classes = (IsAuthenticated,)
    url_name = "api:openapi"
    template_name = "portal/api_docs.html"  # without inline styles, which our policy for contents refuses


def without_doubles(endpoints: Any, **_: Any) -> Any:
    """Each address has a twin with a slash at its end, which the OpenAPI document need not name (a preprocessing hook)."""
    return [endpoint for endpoint in endpoints if not endpoint[0].endswith("/")]


v1 = [
    *route("auth/login", Login, "token-login"),
    *route("auth/logout", Logout, "token-logout"),
    *route("auth/logout-all", LogoutAll, "token-logout-all"),
    *route("about", About, "about"),
    *route("apply", Apply, "apply"),
    *ledger_urls,
    *share_urls,
    *cluster_urls,
    *topology_urls,
    *unblock_urls,
    *simulation_urls,
    *cockpit_urls,
    *drain_urls,
    *queues_urls,
    *jobs_urls,
    *bulk_urls,
    *blueprint_urls,
    *flow_urls,
    *cron_urls,
    *logs_urls,
    path("openapi.json", SchemaView.as_view(), name="openapi"),
]

app_name = "api"
urlpatterns = [
    path("v1/", include(v1)),
    path("docs/", login_required(DocsView.as_view()), name="docs"),  # a page: it leads to the sign-in
    re_path(r"", Nothing.as_view(), name="nothing"),
]
