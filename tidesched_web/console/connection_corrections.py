from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.connection_selectors import visible_tests
from tidesched_web.clusters.kubernetes.probe import FAILED
from tidesched_web.clusters.models import ConnectionKind, ConnectionTest
from tidesched_web.console.page import Page

# A finding's code, or its step, and the field of the form that is the cause.
_AT_FAULT: dict[str, str | Promise] = {
    "wrong_authority": _("Correct the certificate authority"),
    "not_let_in": _("Correct the token"),
    "credentials": _("Correct the token"),
    "reach": _("Correct the address"),
    "identity": _("Correct the token"),
}


@dataclass(frozen=True)
class Correction:
    """A link to the form. ``typed``: its fields are as they were, but for the secret; a kubeconfig is given again."""

    address: str
    word: str
    typed: bool


def correction_of(test: ConnectionTest) -> Correction | None:
    if not test.offer or test.taken_at is not None or test.verdict != FAILED:
        return None
    way, word = _way(test), str(_("Give another connection"))
    if way == "token":
        causes = [one[name] for one in test.findings if one["level"] == FAILED for name in ("code", "step")]
        word = str(next((_AT_FAULT[cause] for cause in causes if cause in _AT_FAULT), _("Correct what was given")))
    page = (
        reverse("console:cluster_new")
        if test.cluster is None
        else reverse("console:connection_replace", args=[test.cluster.slug])
    )
    return Correction(f"{page}?{urlencode({'way': way, 'offer': test.pk})}", word, way == "token")


def typed_before(this: Page) -> dict[str, Any]:
    wanted = this.request.GET.get("offer", "")
    if not wanted:
        return {}
    known = wanted.isascii() and wanted.isdigit() and len(wanted) < 19
    test = visible_tests(this.access).filter(pk=int(wanted), offer=True).first() if known else None
    if test is None or test.cluster_id != (this.cluster.pk if this.section == "connection" else None):
        raise Http404
    typed = {"mode": test.mode, "context": test.context}
    if _way(test) == "token":
        names = ("api_url", "ca_certificate", "tls_server_name")
        typed |= {name: getattr(test, name) for name in names}
    return typed


def _way(test: ConnectionTest) -> str:
    if test.connection_kind == ConnectionKind.IN_CLUSTER:
        return "own-pod"
    return "kubeconfig" if test.contexts else "token"
