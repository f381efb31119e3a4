"""Django's settings, all of them from the environment (docs/operations.md lists the variables)."""

import re
from typing import Any

import dj_database_url
from csp.constants import NONCE, NONE, SELF
from django.utils.translation import gettext_lazy as _

from tidesched_web import env
from tidesched_web.embedded import prepared, sockets

BASE_DIR = env.BASE_DIR
DATA_DIR = env.data_dir()
RUNTIME = env.runtime()
VERSION = "0.1.0"

# An embedded installation is one that brings its own servers: no DATABASE_URL in the environment of a user.
EMBEDDED = env.flag("TIDESCHED_EMBEDDED", default=not env.text("DATABASE_URL"))
DEMO = env.flag("DEMO", default=EMBEDDED)
DEBUG = env.flag("DEBUG", default=False)

# Empty when neither is there: Django then refuses at the first use, while checks and builds work without one.
SECRET_KEY = env.secret("SECRET_KEY", "secret_key")
# The first key encrypts, all decrypt. Never derived from SECRET_KEY, so that either can be changed alone.
TIDESCHED_KEYS = [key for key in env.secret("TIDESCHED_KEYS", "tidesched_keys").replace("\n", ",").split(",") if key]

# --- the address that people use --------------------------------------------------------------------------------------

GIVEN_URL = env.origin("PUBLIC_URL")
PUBLIC_URL = GIVEN_URL or RUNTIME.web_url or "http://127.0.0.1:8000"
LISTENS_ON = env.text("HOST", "127.0.0.1")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
# Who listens on every interface is reached under names that cannot be known here.
_EVERYWHERE = LISTENS_ON in {"0.0.0.0", "::"}  # noqa: S104
_PUBLIC_NAME = re.sub(r":[0-9]+$", "", GIVEN_URL.rpartition("/")[2])
_NAMES = tuple(name for name in (*_LOCAL_NAMES, LISTENS_ON, _PUBLIC_NAME) if name)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ("*",) if _EVERYWHERE else _NAMES)
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", (PUBLIC_URL,))
_HTTPS = PUBLIC_URL.startswith("https://")
SECURE_SSL_HOST = GIVEN_URL.rpartition("/")[2] or None
SECURE_SSL_REDIRECT = _HTTPS and env.flag("SECURE_SSL_REDIRECT", default=True)
# A Prometheus beside the pods asks each of them, and not the proxy that ends https.
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]
# Whose X-Forwarded-For is believed: of the proxies named here, else of the peer (common.client_address).
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
BEHIND_PROXY = env.flag("BEHIND_PROXY", default=bool(TRUSTED_PROXIES))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_HSTS_SECONDS = env.number("SECURE_HSTS_SECONDS", 31_536_000 if _HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = _HTTPS
# `preload` is a promise for the whole domain that is hard to take back, so it is not made by default.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = _HTTPS
SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_COOKIE_SECURE = _HTTPS
CSRF_COOKIE_HTTPONLY = False  # the page's own script sends it back in a header
X_FRAME_OPTIONS = "DENY"

# --- applications -----------------------------------------------------------------------------------------------------

# Django's admin is left out on purpose: it writes around the services, and so around the audit log.
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "tidesched_web.common",
    "tidesched_web.audit",
    "tidesched_web.accounts",
    "tidesched_web.clusters",
    "tidesched_web.jobs",
    "tidesched_web.quota",
    "tidesched_web.workloads",
    "tidesched_web.scheduling",
    "tidesched_web.changes",
    "tidesched_web.api",
    "tidesched_web.metrics",
    "tidesched_web.console",
]
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

MIDDLEWARE = [
    "tidesched_web.common.request_context.middleware",
    "tidesched_web.front.middleware.measured",
    "django.middleware.security.SecurityMiddleware",
    "tidesched_web.common.static_files.StaticFilesMiddleware",
    "tidesched_web.front.middleware.Compression",
    "tidesched_web.front.middleware.unchanged",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "tidesched_web.front.middleware.throttle",
    "tidesched_web.console.middleware.ReaderMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
CSRF_FAILURE_VIEW = "tidesched_web.front.failures.csrf_failure"
ROOT_URLCONF = "tidesched_web.urls"
ASGI_APPLICATION = "tidesched_web.asgi.application"

TEMPLATE_SOURCES = ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [("django.template.loaders.cached.Loader", TEMPLATE_SOURCES)],
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "tidesched_web.console.page.context",
            ],
        },
    }
]

# --- data -------------------------------------------------------------------------------------------------------------

DATABASE_URL = env.text("DATABASE_URL") or RUNTIME.database_url or sockets.database_url(DATA_DIR)
# The role that changes the schema, where it is not the application's own: `manage.py prepare` alone uses it.
DATABASE_OWNER_URL = env.text("DATABASE_OWNER_URL")
if not DATABASE_OWNER_URL and sockets.database_url(DATA_DIR) == DATABASE_URL:
    DATABASE_OWNER_URL = sockets.database_owner_url(DATA_DIR)
REDIS_URL = env.text("REDIS_URL") or RUNTIME.redis_url or sockets.redis_url(DATA_DIR)

_POOL = env.number("DATABASE_POOL", 0)
_DATABASE: dict[str, Any] = dict(dj_database_url.parse(DATABASE_URL))
# A persistent connection per thread leaks under ASGI and breaks after a fork; the web process has a pool instead.
_DATABASE["CONN_MAX_AGE"] = 0
_DATABASE["ATOMIC_REQUESTS"] = False  # services own their transactions
if _POOL:
    _DATABASE["CONN_HEALTH_CHECKS"] = True  # a connection that a restart of PostgreSQL has cut is not handed out
    # A statement, and a network that answers nothing, are waited for no longer than this.
    limits = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "options": "-c statement_timeout=30s"}
    _DATABASE["OPTIONS"] = limits | _DATABASE.get("OPTIONS", {})
    _DATABASE["OPTIONS"]["pool"] = {
        "min_size": 2,
        "max_size": _POOL,
        "timeout": 5,
        "max_waiting": 2 * _POOL,
        "reconnect_timeout": 10,  # then the next request that needs a connection asks for one, without a long pause
    }
DATABASES = {"default": _DATABASE}

CACHES = {
    "default": {
        "BACKEND": "tidesched_web.common.redis_cache.Cache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "tidesched",
        "OPTIONS": {"socket_timeout": 3, "socket_connect_timeout": 3},
    }
}

# --- what requests may take of a web process (docs/operations.md) ----------------------------------------------------

# Requests that run at the same time: as many threads, and never more database connections of pages than these.
WEB_REQUESTS_AT_ONCE = max(1, env.number("WEB_REQUESTS_AT_ONCE", 12))
WEB_WAITING = 500
# A body of the API; a form of a page, which may hold a file, may have twice as many.
WEB_BODY_BYTES = env.number("WEB_BODY_BYTES", 4_194_304)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * WEB_BODY_BYTES
STREAMS = env.number("STREAMS", 1000)
STREAMS_OF_ONE = env.number("STREAMS_OF_ONE", 20)
# Who reads /metrics without a token: the addresses of a Prometheus (docs/metrics.md).
METRICS_ADDRESSES = env.networks("METRICS_ADDRESSES")

# --- who may come in --------------------------------------------------------------------------------------------------

# A name and a password of an account here, or a provider of OpenID Connect (docs/security.md).
AUTHENTICATION_BACKENDS = ["tidesched_web.accounts.backend.AccountBackend"]
PASSWORD_HASHERS = ["tidesched_web.common.hashing.Argon2", "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
PASSWORD_LENGTH = env.PASSWORD_LENGTH
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "tidesched_web.accounts.password_length.MinimumLength", "OPTIONS": {"min_length": PASSWORD_LENGTH}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "console:sign_in"
LOGIN_REDIRECT_URL = "console:overview"
LOGOUT_REDIRECT_URL = "console:sign_in"

ACCOUNT_ADAPTER = "tidesched_web.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
SOCIALACCOUNT_ADAPTER = "tidesched_web.accounts.social_adapter.SocialAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = True  # a form could not lead to another host: the content security policy holds it here
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
# A provider by the environment; others are added on the page "Sign-in".
OIDC_ISSUER = env.text("OIDC_ISSUER")
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
OIDC_NAME = env.text("OIDC_NAME", "Single sign-on")
OIDC_SCOPES = env.text("OIDC_SCOPES", "openid profile email groups offline_access")
# A person whom the provider no longer vouches for, or whose groups are others, is known after so long at most.
SIGN_IN_CHECK_SECONDS = min(max(1, env.number("SIGN_IN_CHECK_SECONDS", 300)), 540)
# How many tries there may be (docs/security.md): allauth's own names first, those of accounts.sign_in_limits behind.
ACCOUNT_RATE_LIMITS = {
    "login": "120/m/ip",
    "login_failed": env.rates("SIGN_IN_LIMIT_FAILURES", "10/m/ip,100/h/ip,5/5m/key"),
    "change_password": "5/m/user,20/h/user",
    "login_account": "30/10m/key",
    "login_spacing": "1/30s/key",
    "login_all": "300/m/key",
}
MFA_ADAPTER = "tidesched_web.accounts.mfa.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = "TideSched"
MFA_TOTP_TOLERANCE = 1  # a phone's clock may be half a minute wrong

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src-elem": [SELF, NONCE],
        # Nothing needs it: plotly.js sets styles through the object model, bars are drawn with attributes of SVG.
        "style-src-attr": [NONE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF, "data:"],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- language, time ---------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
FORMAT_MODULE_PATH = ["tidesched_web.common.formats"]
USE_TZ = True
TIME_ZONE = "UTC"

# --- files ------------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = prepared.static_root()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "tidesched_web.common.static_storage.HashedStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = False

# --- REST -------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "tidesched_web.api.document.automatic.DocumentedSchema",
    "DEFAULT_RENDERER_CLASSES": ["tidesched_web.api.renderers.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tidesched_web.api.parsers.PlainJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tidesched_web.api.authentication.BearerAuthentication",
        "tidesched_web.api.authentication.BrowserAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["tidesched_web.api.throttling.CallerThrottle"],
    "EXCEPTION_HANDLER": "tidesched_web.api.problem_json.handle",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
# Requests a minute of one user, and of one address that is not signed in; 0 = no limit.
API_REQUESTS_PER_MINUTE = env.number("API_REQUESTS_PER_MINUTE", 3000)
API_ANONYMOUS_REQUESTS_PER_MINUTE = 120
SPECTACULAR_SETTINGS = {
    "TITLE": "TideSched",
    "DESCRIPTION": "Quota, gangs and reclaims of GPU clusters.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "tidesched_web.api.schema.complete"],
    "ENUM_NAME_OVERRIDES": {
        "ServiceTypeEnum": "tidesched_web.common.models.ServiceType",
        "QueueStateEnum": "tidesched_web.quota.models.QueueState",
        "ChangeStateEnum": "tidesched_web.changes.models.ChangeState",
        "CarryStateEnum": "tidesched_web.changes.models.CarryState",
        "WantedQueueStateEnum": "tidesched_web.api.v1.serializers.tree_writes.WANTED_STATES",
        "GangStateEnum": "tidesched_web.workloads.models.GangState",
        "SessionStateEnum": "tidesched_web.scheduling.models.SessionState",
        "ConnectionKindEnum": "tidesched_web.clusters.models.ConnectionKind",
        "ClusterModeEnum": "tidesched_web.clusters.models.ClusterMode",
        "FindingLevelEnum": "tidesched_web.api.v1.serializers.connections.LEVEL_CHOICES",
        "VerdictEnum": "tidesched_web.api.v1.serializers.connections.VERDICT_CHOICES",
        "JobStateEnum": "tidesched_web.jobs.models.JobState",
        "JobKindEnum": "tidesched_web.jobs.models.JobKind",
        "DecisionStateEnum": "tidesched_web.scheduling.models.DecisionState",
        "ReclaimStateEnum": "tidesched_web.scheduling.models.ReclaimState",
        "CardKindEnum": "tidesched_web.clusters.models.CardKind",
        "DecisionKindEnum": "tidesched_web.scheduling.models.DecisionKind",
        "TokenStateEnum": "tidesched_web.accounts.models.TokenState",
        "AlertCodeEnum": "tidesched_web.api.v1.serializers.scheduling.ALERT_CODES",
        "ReasonCodeEnum": "tidesched_web.api.v1.serializers.workloads.REASON_CODES",
        "GangEventKindEnum": "tidesched_web.workloads.models.GangEventKind",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- the demo's cluster -----------------------------------------------------------------------------------------------

SIMCLUSTER_URL = env.text("SIMCLUSTER_URL", RUNTIME.simcluster_url)
SIMCLUSTER_TOKEN_FILE = env.text("SIMCLUSTER_TOKEN_FILE", RUNTIME.simcluster_token_file)

# --- how much history is kept (docs/sessions.md): rows of a cluster, but for bytes -----------------------------------

RETENTION_PARTITION_HOURS = env.number("RETENTION_PARTITION_HOURS", 1 if EMBEDDED else 24)
RETENTION_DECISION_BYTES = env.number("RETENTION_DECISION_BYTES", 512 * 1024 * 1024)
RETENTION_USAGE_BYTES = env.number("RETENTION_USAGE_BYTES", 512 * 1024 * 1024)
RETENTION_SESSIONS = env.number("RETENTION_SESSIONS", 5_000)
RETENTION_SESSIONS_WITH_DECISIONS = 4 * RETENTION_SESSIONS
RETENTION_RECLAIMS = 20_000
RETENTION_GONE_GANGS = 10_000
RETENTION_CHANGES = 5_000
RETENTION_TIMELINE_POINTS = 200  # of a gang
RETENTION_TIDE_POINTS = env.number("RETENTION_TIDE_POINTS", 40_000)
RETENTION_TIDE_STEPS = 20_000
RETENTION_ROLLUPS = env.number("RETENTION_ROLLUPS", 50_000)
RETENTION_ALERTS = 1_000
RETENTION_JOBS = 500

# --- how much one account may keep (docs/security.md) -----------------------------------------------------------------

KEPT_TOKENS = 100
KEPT_SESSIONS = 200  # of the console, open at a time
KEPT_INVITATIONS = 200
KEPT_OPEN_CHANGES = 500
KEPT_REVISIONS = 100  # earlier ones of a change
KEPT_WAITING_JOBS = 100
JOBS_RUNNING_PER_PERSON = 1  # in each kind of worker; what is beyond waits for its turn
# Objects of one kind that admins of a tenant make in one cluster; a platform admin may make more.
KEPT_OBJECTS_OF_TENANT = 2_000

# --- the audit log (docs/audit.md) ------------------------------------------------------------------------------------

# Public keys, in hexadecimal, that a verification trusts; without one those that TIDESCHED_KEYS can decrypt.
AUDIT_PUBLIC_KEYS = env.words("AUDIT_PUBLIC_KEYS")
# Where each signed head is written too. Keep it where the owner of the database cannot write.
AUDIT_HEADS_FILE = env.text("AUDIT_HEADS_FILE", str(DATA_DIR / "audit-heads.ndjson") if EMBEDDED else "")

# --- jobs: who does which kind ----------------------------------------------------------------------------------------

JOB_HANDLERS = {
    "impact": "tidesched_web.changes.impact_jobs.impact_now",
    "impact_day": "tidesched_web.changes.impact_jobs.impact_of_a_day",
    "connection_test": "tidesched_web.scheduling.connection_test_jobs.test_connection",
}
# What is told where a job ended without a result: by its handler, its limit of time, or the end of its process.
JOB_ENDINGS = {"connection_test": "tidesched_web.scheduling.connection_test_jobs.test_broke"}

# --- logs -------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"},
        "json": {"()": "tidesched_web.common.log_lines.JsonFormatter"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": env.choice("LOG_FORMAT", "line", "json")},
    },
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {
        "django.server": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        # One line for each task that comes and goes would be several a second.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        # What expired is asked for again by the next message.
        "celery.worker.request": {"level": "WARNING"},
    },
}
