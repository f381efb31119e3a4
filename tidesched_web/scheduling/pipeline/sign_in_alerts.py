from tidesched_web.accounts.identity_selectors import identity_providers, sign_in_settings
from tidesched_web.scheduling.models import Alert, AlertSeverity
from tidesched_web.scheduling.pipeline import alerts

BREAK_GLASS = "break_glass"


def look() -> int:
    """Of each use of the break-glass account until somebody resolves it; of a provider while it does not answer."""
    said = sign_in_settings()
    raised = 0
    if said.break_glass_used_at is not None:
        name, used_at = said.break_glass_used_by, said.break_glass_used_at.isoformat()
        if not Alert.objects.filter(cluster=None, key=BREAK_GLASS, numbers__used_at=used_at).exists():
            raised += alerts.raise_alert(
                cluster_id=None,
                key=BREAK_GLASS,
                severity=AlertSeverity.CRITICAL,
                code=BREAK_GLASS,
                message=f"The break-glass account {name} has signed in with its password.",
                numbers={"user": name, "used_at": used_at},
            )
    for provider in identity_providers():
        key = f"identity_provider:{provider.slug}"
        if provider.failing_since is None or not provider.enabled:
            alerts.resolve(cluster_id=None, key=key)
            continue
        raised += alerts.raise_alert(
            cluster_id=None,
            key=key,
            severity=AlertSeverity.WARNING,
            code="identity_provider_fails",
            message=f"The people of {provider.name} cannot be checked: {provider.failure}",
            numbers={"provider": provider.name},
        )
    return raised
