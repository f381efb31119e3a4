from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from tidesched_web.changes import services
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.tree_document import kind_of, parts_of
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.edit import EditForm
from tidesched_web.console.page import Page
from tidesched_web.quota.owner_selectors import refuse_taken


def change_link(change: QuotaChange) -> SafeString:
    address = reverse("console:change", args=[change.cluster.slug, change.pk])
    return format_html('<a href="{}">{}</a>', address, _("Change %(n)s") % {"n": change.pk})


def tell_waits(this: Page, change: QuotaChange) -> None:
    text = _("{change} waits for the approval of a second person; nothing is changed until then.")
    messages.warning(this.request, format_html(text, change=change_link(change)))


def _parts(key: str) -> tuple[str, ...]:
    try:
        return parts_of(key)
    except ValueError as error:
        raise DomainError("invalid", str(error)) from None


def _looked_at(form: EditForm, key: str) -> dict[str, int]:
    version = form.cleaned_data.get("version")
    return {key: version} if key and version is not None else {}


def carried(
    this: Page,
    form: EditForm,
    edits: Mapping[str, Any],
    *,
    key: str = "",
    new: str = "",
    done: str = "",
    reason: str | None = None,
) -> QuotaChange | None:
    """``key`` names the object whose version the form looked at, ``new`` the one that may not be there yet."""
    values, versions = form.cleaned_data, _looked_at(form, key)
    try:
        if new:
            refuse_taken(this.cluster, kind_of(new), *_parts(new))
        change = services.carry_out(
            cluster=this.cluster,
            edits=edits,
            access=this.access,
            reason=values["reason"] if reason is None else reason,
            source="console",
            versions=versions,
        )
    except DomainError as error:
        form.refuse(error)
        return None
    if change.pk is None:
        messages.info(this.request, _("Nothing was changed: it is so already."))
    elif change.state == ChangeState.WAITING:
        tell_waits(this, change)
    else:
        messages.success(this.request, done or _("The changes are saved and go to the cluster."))
    return change


def drafted(
    this: Page, form: EditForm, edits: Mapping[str, Any], *, key: str = "", new: str = ""
) -> QuotaChange | None:
    versions = _looked_at(form, key)
    try:
        if new:
            refuse_taken(this.cluster, kind_of(new), *_parts(new))
        change = services.draft(
            cluster=this.cluster,
            edits=edits,
            access=this.access,
            reason=form.cleaned_data["reason"],
            source="console",
            versions=versions,
            sound=True,
            once=True,
        )
    except DomainError as error:
        form.refuse(error)
        return None
    services.ask_impact(change=change, access=this.access, just_planned=True)
    return change
