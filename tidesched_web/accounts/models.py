from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from tidesched_web.common.models import Versioned


class PlatformRole(models.TextChoices):
    NONE = "", _("None")
    ADMIN = "admin", _("Platform admin")
    AUDITOR = "auditor", _("Auditor")


class Density(models.TextChoices):
    DENSE = "dense", _("One line for each row")
    COMFORTABLE = "comfortable", _("As many lines as the texts need")


class User(AbstractUser):
    platform_role = models.CharField(_("platform role"), max_length=16, choices=PlatformRole, blank=True, default="")
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True, default="")
    language = models.CharField(_("language"), max_length=16, blank=True, default="")
    density = models.CharField(_("density of lists"), max_length=16, choices=Density, default=Density.DENSE)
    must_change_password = models.BooleanField(default=False)
    # Who made the account, and who gave its platform role when: they do not make a second person for each other.
    invited_by = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    role_given_by = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    role_given_at = models.DateTimeField(null=True, blank=True)
    # Who a provider says that it is; empty in an account that signs in with a password. Each audit entry repeats them.
    issuer = models.CharField(max_length=500, blank=True, default="", db_default="", editable=False)
    subject = models.CharField(max_length=255, blank=True, default="", db_default="", editable=False)

    @property
    def is_platform_admin(self) -> bool:
        return self.is_active and self.platform_role == PlatformRole.ADMIN

    @property
    def sees_everything(self) -> bool:
        return self.is_active and self.platform_role in (PlatformRole.ADMIN, PlatformRole.AUDITOR)


class Tenant(Versioned):
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    approval_required = models.BooleanField(
        default=False, help_text=_("A second person has to approve changes of this tenant's quota.")
    )
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        User, through="Membership", through_fields=("tenant", "user"), related_name="tenants"
    )

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class Project(Versioned):
    """A space inside a tenant; inference queues belong to one."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=120)

    class Meta:
        ordering = ["tenant__slug", "slug"]
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="project_slug_in_tenant")]

    def __str__(self) -> str:
        return self.name


class BusinessLine(Versioned):
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, blank=True, related_name="business_lines")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=120)

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "slug"], name="business_line_slug_in_tenant", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.name


class TenantRole(models.TextChoices):
    ADMIN = "admin", _("Tenant admin")
    MEMBER = "member", _("Member")


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=TenantRole, default=TenantRole.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)
    # Of the role that it is now; empty = since the membership began.
    given_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    given_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveBigIntegerField(default=1, editable=False)

    class Meta:
        ordering = ["tenant", "user"]
        constraints = [models.UniqueConstraint(fields=["user", "tenant"], name="one_membership_per_tenant")]

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant}: {self.role}"


class Scope(models.TextChoices):
    """What a token may do; never more than its user may."""

    CLUSTER_READ = "cluster:read"
    QUOTA_READ = "quota:read"
    QUOTA_WRITE = "quota:write"
    RECLAIM_READ = "reclaim:read"
    AUDIT_READ = "audit:read"
    METRICS_READ = "metrics:read"
    ADMIN = "admin"


class TokenState(models.TextChoices):
    LIVE = "live", _("Live")
    EXPIRED = "expired", _("Expired")
    REVOKED = "revoked", _("Revoked")
    ACCOUNT_OFF = "account_off", _("Account switched off")


class ApiToken(models.Model):
    """A bearer token; only its SHA-256 is kept (the token itself has 256 random bits, so no salt is needed)."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    scopes: ArrayField[list[str], list[str]] = ArrayField(models.CharField(max_length=32, choices=Scope))
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    LIVE: ClassVar[Q] = Q(revoked_at__isnull=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.user})"

    @property
    def usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())

    @property
    def state(self) -> str:
        """Whether it works now: a token of an account that is switched off does not."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if not self.usable:
            return TokenState.EXPIRED
        return TokenState.LIVE if self.user.is_active else TokenState.ACCOUNT_OFF


class IdentityProvider(Versioned):
    """Who signs people in by OpenID Connect. Its issuer stays: a subject means a person only together with it."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    issuer = models.URLField(max_length=500, unique=True)
    client_id = models.CharField(max_length=255)
    secret = models.BinaryField(null=True)
    secret_key_id = models.CharField(max_length=32, blank=True, default="")
    scopes = models.CharField(max_length=255, default="openid profile email groups offline_access")
    enabled = models.BooleanField(default=True)
    from_environment = models.BooleanField(default=False)
    # Since when the check of those who came from it gets no answer.
    failing_since = models.DateTimeField(null=True)
    failure = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Identity(models.Model):
    """What a provider last said of a person, and the refresh token by which it is asked again."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="identity")
    provider = models.ForeignKey(IdentityProvider, on_delete=models.PROTECT, related_name="identities")
    claims = models.JSONField(default=dict)
    # What the rules gave, and nobody by hand: `{"platform_role": …, "tenants": {id: role}}`.
    given = models.JSONField(default=dict)
    refresh_token = models.BinaryField(null=True)
    refresh_key_id = models.CharField(max_length=32, blank=True, default="")
    # When it was last asked about, and when the provider last said yes.
    checked_at = models.DateTimeField()
    vouched_at = models.DateTimeField()
    # The provider no longer vouches for the person: a new sign-in ends this.
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["checked_at"], name="identity_due", condition=Q(ended_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.user} by {self.provider}"


class RuleRole(models.TextChoices):
    PLATFORM_ADMIN = "admin", _("Platform admin")
    AUDITOR = "auditor", _("Auditor")
    TENANT_ADMIN = "tenant_admin", _("Tenant admin")
    MEMBER = "member", _("Member")


TENANT_ROLES = {RuleRole.TENANT_ADMIN: TenantRole.ADMIN, RuleRole.MEMBER: TenantRole.MEMBER}


class SignInRule(Versioned):
    """Who has ``value`` in ``claim``, as its text or in its list, gets ``role``."""

    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="rules")
    claim = models.CharField(max_length=120, default="groups")
    value = models.CharField(max_length=255)
    role = models.CharField(max_length=16, choices=RuleRole)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    # Stands behind the roles that the rule gives, as who gives them by hand does.
    edited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["provider", "claim", "value", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "claim", "value", "role", "tenant"], name="one_sign_in_rule", nulls_distinct=False
            ),
            models.CheckConstraint(
                name="tenant_of_a_tenants_role",
                condition=Q(role__in=TENANT_ROLES, tenant__isnull=False)
                | (~Q(role__in=TENANT_ROLES) & Q(tenant__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.claim} = {self.value}: {self.role}"


class SignInSettings(Versioned):
    """One row. With local accounts off, ``break_glass`` alone signs in with a password."""

    local_accounts = models.BooleanField(default=True)
    break_glass = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    break_glass_used_at = models.DateTimeField(null=True)
    break_glass_used_by = models.CharField(max_length=150, blank=True, default="")
    mfa_roles: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=16, choices=RuleRole), default=list
    )

    def __str__(self) -> str:
        return "sign-in"


class LinkKind(models.TextChoices):
    INVITE = "invite", _("Invitation")
    RESET = "reset", _("New password")


class AccessLink(models.Model):
    """A link by which a person sets a password once, before it expires; only the SHA-256 of its secret is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="access_links")
    kind = models.CharField(max_length=8, choices=LinkKind)
    # Made by an admin of this tenant, who knows its secret: it works only while the account can do no more than that.
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="access_links")
    link_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=200)
    made_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    LIVE: ClassVar[Q] = Q(used_at__isnull=True, revoked_at__isnull=True)

    def __str__(self) -> str:
        return f"{self.kind} link of {self.user}"

    @property
    def usable(self) -> bool:
        return self.used_at is None and self.revoked_at is None and self.expires_at > timezone.now()


SCOPE_WORDS = {
    Scope.CLUSTER_READ: gettext_noop("read clusters and their policy, nodes, card types, gangs, sessions, alerts"),
    Scope.QUOTA_READ: gettext_noop(
        "read tenants, projects, business lines, members, everything of quota and its changes, gangs, usage"
    ),
    Scope.QUOTA_WRITE: gettext_noop("change quota and everything that is carried out as a change; read changes, jobs"),
    Scope.RECLAIM_READ: gettext_noop("read reclaims, sessions, alerts"),
    Scope.AUDIT_READ: gettext_noop("read the audit log and accounts"),
    Scope.METRICS_READ: gettext_noop("read usage, /metrics"),
    Scope.ADMIN: gettext_noop("all of the above; tokens, members, accounts, and the acts of platform admins"),
}
