"""Settings, from the environment; every default is safe and works on a fresh machine.

BASALT_DATA             folder of the databases, the secret key and the store's lock (default: var/ beside manage.py)
BASALT_SECRET_KEY       Django's key (default: one made once and kept in BASALT_DATA)
BASALT_HOSTS            host names that are served, by commas (default: this machine only)
BASALT_PRODUCTION       1 where several processes serve a cluster: nothing is made up, and what is missing ends a web process
BASALT_HTTPS            1 when people reach the portal over https: cookies become secure, http is redirected
BASALT_SCHEDULER_NAMES  pods of these scheduler names are ours, by commas; the first is the default
BASALT_LOG              level of the log (default: info)
BASALT_TIME_ZONE        zone of clock times for who chose none and whose browser told none, such as Asia/Shanghai (default: UTC)
BASALT_DEBUG            1 for Django's debug pages
BASALT_HOST_PATHS       folders of this machine that pods may mount by hostPath, by colons (default: none; runtime process)
BASALT_POD_PIDS         most processes of a container (default: 1024; runtime process)
BASALT_LOG_MB           most megabytes that are kept of one attempt of a container (default: 50)
BASALT_LOGS_KEEP_DAYS   days for which a pod's logs are kept after its end (default: 14)
BASALT_LOGS_KEEP_MB     megabytes that all logs may take; the oldest go first (default: 2048)
BASALT_TRACES           folder of traces that people may simulate from the portal (default: none; they upload theirs)
BASALT_EVENTS_KEEP_DAYS days for which events of the cluster are kept after they were last seen (default: 90)
DATABASE_URL            postgresql://user:password@host/name (default: SQLite in BASALT_DATA)
REDIS_URL               redis://host:port/0 (default: channel layer and work queue in memory)
BASALT_SCHEDULER        off: another scheduler, such as Volcano's, serves this cluster; Basalt shows what it writes (default: on)
BASALT_CONTROLLER       off: other controllers, such as Volcano's, serve this cluster (default: on)
BASALT_CONTROLLERS      workers: Celery workers do the controllers' work (needs REDIS_URL; default: threads of this process)
BASALT_WEB_LISTEN       where a web process serves /healthz, /readyz and /metrics, such as 0.0.0.0:8085 (default: nowhere)
BASALT_WORKER_LISTEN    where a Celery worker serves /healthz, /readyz and /metrics, such as 0.0.0.0:8084 (default: nowhere)
BASALT_CLUSTER          kubernetes: this web process serves a Kubernetes cluster (default: the embedded one of `manage.py run`)
BASALT_CLUSTER_URL      the cluster's API server for processes without a cluster of their own (default: as kubectl finds it)
BASALT_CLUSTER_TOKEN    a bearer token for that, such as one of `manage.py token`
BASALT_CLUSTER_CA       a file of certificates by which that API server is known (default: the system's)
BASALT_CLUSTER_AT_ONCE  most writes that a process has under way at that API server (default: 32)
BASALT_EVICTION_FALLBACK  delete: a pod whose eviction a disruption budget refuses is deleted (default: none, it stays)
BASALT_CLUSTER_RATE     most writes a second that a process makes there (default: 0, as fast as answers come)
BASALT_SCHEDULER_CONFIGMAP  [NAMESPACE/]NAME[:KEY] of the ConfigMap with the scheduler's configuration, or off
                        (default: volcano-system/volcano-scheduler-configmap, where pods of `volcano` are ours; else off)
BASALT_NAMESPACE        namespace of the Leases by which processes elect their leader (default: the pod's own, else default)
"""

from __future__ import annotations

import os
import zoneinfo
from datetime import timedelta
from pathlib import Path

from csp.constants import NONCE, NONE, SELF, UNSAFE_INLINE

from portal import logs
from portal.environment import data_folder, database, listed, one_of, secret_key, switch, whole

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = data_folder(BASE_DIR / "var")

PRODUCTION = os.environ.get("BASALT_PRODUCTION") == "1"
SECRET_KEY = secret_key(DATA_DIR, production=PRODUCTION)
DEBUG = os.environ.get("BASALT_DEBUG") == "1"
HTTPS = os.environ.get("BASALT_HTTPS") == "1"
ALLOWED_HOSTS = listed("BASALT_HOSTS", "localhost,127.0.0.1,[::1]")

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "portal.admin_config.BasaltAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "knox",
    "channels",
    "django_htmx",
    "axes",
    "csp",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "cluster",
    "queues",
    "jobs",
    "portal",
]


# The embedded store writes to a SQLite file of its own, so that no page's transaction ever makes a cluster write wait.
DATABASES = {"default": database(DATA_DIR, "basalt")}
STORE_DATABASE = "default"
if not os.environ.get("DATABASE_URL"):
    DATABASES["cluster"] = database(DATA_DIR, "cluster")
    STORE_DATABASE = "cluster"
DATABASE_ROUTERS = ["cluster.routers.StoreRouter"]

MIDDLEWARE = [
    "portal.probes.answer",
    "portal.metrics.web.measure",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.compress.PagesMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "portal.timezones.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    },
]

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = 14 * 24 * 3600

# Five wrong passwords of one name from one address close the door for fifteen minutes.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_CALLABLE = "portal.lockout.locked_out"
CSRF_FAILURE_VIEW = "portal.views.csrf_failure"

# Cookies that scripts cannot read; over https only, where https is served.
SESSION_COOKIE_HTTPONLY = True  # not so the CSRF cookie: the pages' own scripts send its token back in a header
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
if HTTPS:
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host != "*"]
SECURE_REFERRER_POLICY = "same-origin"
# Whether subdomains serve https too, and whether browsers' lists should say so, is for the owner of the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20

# Scripts and styles are our own files or carry the page's nonce; only style attributes are free, for the widths of bars.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "style-src-attr": [UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

ASGI_APPLICATION = "portal.asgi.application"
REDIS_URL = os.environ.get("REDIS_URL", "")
if _redis := REDIS_URL:
    # The layer waits for messages in calls of five seconds, which the client's own time-out must not cut short.
    _host = {"address": _redis, "socket_timeout": 30}
    _layer = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [_host]}}
else:
    _layer = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
CHANNEL_LAYERS = {"default": _layer}

# Celery only rings bells: what is to be done is in Redis beside it, so a task may be lost or come twice.
CELERY_BROKER_URL = REDIS_URL or "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 120, "socket_timeout": 30, "socket_connect_timeout": 5}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "basalt"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 4
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# What goes by the clock and not by a change. It has a queue of its own: a worker serves either or both (-Q basalt,basalt-daily).
CELERY_TASK_ROUTES = {"basalt.tidy": {"queue": "basalt-daily"}}
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat")

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = "UTC"
BASALT_TIME_ZONE = os.environ.get("BASALT_TIME_ZONE") or "UTC"
try:
    zoneinfo.ZoneInfo(BASALT_TIME_ZONE)
except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
    raise SystemExit(f"BASALT_TIME_ZONE is a time zone such as Asia/Shanghai, not {BASALT_TIME_ZONE!r}.") from None
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "portal.urls"

UNFOLD = {
    "SITE_TITLE": "Basalt",
    "SITE_HEADER": "Basalt",
    "SITE_SYMBOL": "deployed_code",
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "4px",
    "ENVIRONMENT": "portal.admin_site.environment",
    "SIDEBAR": {"navigation": "portal.admin_site.navigation"},
    "COLORS": {
        "base": {  # the greys of the pages, so that the admin is of one house with them
            "50": "#f5f7f8",
            "100": "#edf0f2",
            "200": "#e4e8eb",
            "300": "#cbd2d8",
            "400": "#8b96a1",
            "500": "#646e79",
            "600": "#47505a",
            "700": "#323941",
            "800": "#272d34",
            "900": "#14171b",
            "950": "#0d0f12",
        },
        "primary": {
            "50": "#f0f8f8",
            "100": "#e6f2f3",
            "200": "#c9dde0",
            "300": "#9cc6cb",
            "400": "#52bac6",
            "500": "#2f808a",
            "600": "#0c6a74",
            "700": "#0a5a63",
            "800": "#08474e",
            "900": "#063a42",
            "950": "#04262b",
        },
    },
}

STATIC_URL = "/static/"
_gathered = (
    BASE_DIR / "staticfiles"
)  # by deploy/install.sh: what is served, compressed; elsewhere files are served where they lie
STATIC_ROOT = _gathered if _gathered.is_dir() else None
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "portal.vendor.VendorFinder",
]
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "portal.compress.StaticStorage"},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        f"cluster.rest.parsers.{name}Parser" for name in ("JSONManifest", "YAMLManifest", "OldYAMLManifest", "TextYAMLManifest")
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_FILTER_BACKENDS": [],
    "DEFAULT_THROTTLE_RATES": {"login": "20/min"},
    "EXCEPTION_HANDLER": "cluster.rest.problems.handler",
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=7), "TOKEN_PREFIX": "bslt_", "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Basalt",
    "DESCRIPTION": "Batch jobs on Kubernetes: gangs, fair shares and GPUs. Volcano's manifests are the bodies.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "PREPROCESSING_HOOKS": ["portal.api.without_doubles"],
    "ENUM_NAME_OVERRIDES": {
        "JobPhase": "jobs.choices.JobPhase",
        "PodPhase": "jobs.choices.PodPhase",
        "GroupPhase": "jobs.choices.GroupPhase",
        "QueueState": "queues.choices.QueueState",
    },
    "DISABLE_ERRORS_AND_WARNINGS": True,  # an object has two addresses, by uid and by name, which it would complain of each time
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

LOGGING = logs.config(os.environ.get("BASALT_LOG", "info"))

BASALT_TRACES = os.environ.get("BASALT_TRACES", "")
BASALT_POLICY = "portal.policy.StaffPolicy"
BASALT_SCHEDULER, BASALT_CONTROLLER = switch("BASALT_SCHEDULER"), switch("BASALT_CONTROLLER")
BASALT_CONTROLLERS = one_of("BASALT_CONTROLLERS", "threads", "workers")
if BASALT_CONTROLLERS == "workers" and not REDIS_URL:
    raise SystemExit("BASALT_CONTROLLERS=workers needs Redis: set REDIS_URL, such as redis://127.0.0.1:6379/0.")
BASALT_WEB_LISTEN = os.environ.get("BASALT_WEB_LISTEN", "")
BASALT_WORKER_LISTEN = os.environ.get("BASALT_WORKER_LISTEN", "")
BASALT_CLUSTER_URL = os.environ.get("BASALT_CLUSTER_URL", "")
BASALT_CLUSTER_TOKEN = os.environ.get("BASALT_CLUSTER_TOKEN", "")
BASALT_CLUSTER_CA = os.environ.get("BASALT_CLUSTER_CA", "")
BASALT_CLUSTER_AT_ONCE = whole("BASALT_CLUSTER_AT_ONCE", 32)
BASALT_CLUSTER_RATE = whole("BASALT_CLUSTER_RATE", 0, least=0)
BASALT_EVICTION_FALLBACK = one_of("BASALT_EVICTION_FALLBACK", "none", "delete")
BASALT_CLUSTER = one_of("BASALT_CLUSTER", "embedded", "kubernetes")
BASALT_NAMESPACE = os.environ.get("BASALT_NAMESPACE", "")
BASALT_SCHEDULER_NAMES = listed("BASALT_SCHEDULER_NAMES", "volcano,basalt")
# Beside Volcano's scheduler, which has that name, its ConfigMap is its own.
BASALT_SCHEDULER_CONFIGMAP = os.environ.get("BASALT_SCHEDULER_CONFIGMAP") or (
    "volcano-system/volcano-scheduler-configmap" if "volcano" in BASALT_SCHEDULER_NAMES else "off"
)

# The process runtime and its logs. Paths are by colons, as in PATH.
BASALT_HOST_PATHS = [path for path in os.environ.get("BASALT_HOST_PATHS", "").split(":") if path.startswith("/")]
BASALT_POD_PIDS = whole("BASALT_POD_PIDS", 1024)
BASALT_LOG_MB = whole("BASALT_LOG_MB", 50)
BASALT_LOGS_KEEP_DAYS = whole("BASALT_LOGS_KEEP_DAYS", 14)
BASALT_LOGS_KEEP_MB = whole("BASALT_LOGS_KEEP_MB", 2048)
BASALT_EVENTS_KEEP_DAYS = whole("BASALT_EVENTS_KEEP_DAYS", 90)
