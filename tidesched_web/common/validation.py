from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from tidesched_web.common.errors import DomainError


def check_fields(row: models.Model) -> None:
    """Asks no database: relations are left to its constraints. A nullable field may stay empty."""
    passed_over = {
        field.name
        for field in row._meta.fields
        if field.is_relation or (field.null and getattr(row, field.attname) is None)
    }
    try:
        row.clean_fields(exclude=passed_over)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise DomainError.for_field(f"/{field}", " ".join(messages)) from None


def check_version(row: models.Model, version: int | None) -> None:
    """Refuse a write that was made looking at an older ``row`` (call it under the row's lock); None asks nothing."""
    now = row.version  # type: ignore[attr-defined]  # every caller's row is `Versioned`
    if version is not None and now != version:
        raise DomainError(
            "stale",
            _("This was changed meanwhile: you looked at version %(seen)s, it is version %(now)s now.")
            % {"seen": version, "now": now},
            {"etag": f'"{now}"', "version": now},
        )
