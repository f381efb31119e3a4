"""Clusters, their connections, and the switch that stops all sending to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes.removal_services import hanging_on, remove_cluster
from tidesched_web.clusters import connection_services, finding_words, services
from tidesched_web.clusters.connection_selectors import newest_test, running_test, visible_tests
from tidesched_web.clusters.kubernetes import rbac
from tidesched_web.clusters.kubernetes.credential_facts import authorities
from tidesched_web.clusters.kubernetes.probe import FAILED
from tidesched_web.clusters.kubernetes.verbs import MODES
from tidesched_web.clusters.models import Cluster, ClusterMode, ConnectionKind, ConnectionTest
from tidesched_web.common.errors import DomainError
from tidesched_web.console.edit_pages import edit_page, trail_of
from tidesched_web.console.forms.connection import (
    WAYS,
    ConnectForm,
    ConnectionForm,
    OfferModeForm,
    RemoveForm,
    SettingsForm,
    TakeForm,
)
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.pause import PAUSE, RESUME, PauseForm
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_administrator, need_whole_sight
from tidesched_web.quota.drift_selectors import drift_look
from tidesched_web.quota.push_selectors import last_pushes
from tidesched_web.scheduling.connection_test_jobs import start_test
from tidesched_web.scheduling.selectors import first_unsent

# A finding's code, or its step, and the field of the form that is the cause.
_AT_FAULT: dict[str, str | Promise] = {
    "wrong_authority": gettext_lazy("Correct the certificate authority"),
    "not_let_in": gettext_lazy("Correct the token"),
    "credentials": gettext_lazy("Correct the token"),
    "reach": gettext_lazy("Correct the address"),
    "identity": gettext_lazy("Correct the token"),
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
    way, word = _way(test), _("Give another connection")
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


WAY_NAMES = {
    "kubeconfig": gettext_lazy("Kubeconfig"),
    "token": gettext_lazy("Address and token"),
    "own-pod": gettext_lazy("The cluster that TideSched runs in"),
}

# What a removal lists of `hanging_on`; what only the machine knows goes unsaid.
KINDS = {
    "queue": gettext_lazy("Queues"),
    "namespacegrant": gettext_lazy("Namespace grants"),
    "priorityclass": gettext_lazy("Priority classes"),
    "tideplan": gettext_lazy("Tide plans"),
    "quotachange": gettext_lazy("Changes"),
    "gang": gettext_lazy("Gangs"),
    "reclaim": gettext_lazy("Reclaims"),
    "session": gettext_lazy("Sessions"),
    "node": gettext_lazy("Nodes"),
    "cardtype": gettext_lazy("Card types"),
    "alert": gettext_lazy("Alerts"),
}


@dataclass(frozen=True)
class Line:
    level: str
    text: str
    helps: str


@dataclass(frozen=True)
class Step:
    name: str
    level: str
    lines: Sequence[Line]


def steps_of(test: ConnectionTest) -> list[Step]:
    found: dict[str, list[Line]] = {}
    for one in test.findings:
        line = Line(one["level"], finding_words.sentence(one), finding_words.helps(one, test.mode))
        found.setdefault(one["step"], []).append(line)
    order = ("failed", "warning", "note", "good")
    return [
        Step(
            str(finding_words.STEPS[name]),
            next(level for level in order if any(line.level == level for line in lines)),
            lines,
        )
        for name, lines in found.items()
    ]


def shown(test: ConnectionTest) -> dict[str, Any]:
    return {
        "test": test,
        "steps": steps_of(test),
        "grants": finding_words.grants(test.findings, test.mode),
        "mode_word": ClusterMode(test.mode).label,
    }


@takes_forms
@page(section="clusters")
def cluster_new(this: Page) -> HttpResponse:
    need_administrator(this)
    trail = [(_("Clusters"), reverse("console:clusters"))]
    return _given(this, _("Connect a cluster"), trail, None, mode=ClusterMode.OBSERVE)


@page(section="clusters")
def cluster_rights(this: Page, mode: str) -> HttpResponse:
    need_administrator(this)
    if mode not in MODES:
        raise Http404
    answer = HttpResponse(rbac.text("manifests", mode), content_type="application/yaml; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{mode}.yaml"'
    return answer


@takes_forms
@page(section="connection")
def connection_replace(this: Page) -> HttpResponse:
    need_administrator(this)
    title = _("Connect again") if this.cluster.disconnected_at else _("Replace the connection")
    return _given(this, title, _trail(this), this.cluster, mode=this.cluster.mode)


def _given(this: Page, title: str, trail: list[tuple[str, str]], cluster: Cluster | None, *, mode: str) -> HttpResponse:
    way = this.request.GET.get("way", "kubeconfig")
    if way not in WAYS:
        raise Http404
    sent, typed = this.request.method == "POST", typed_before(this)
    form = WAYS[way](this.request.POST if sent else None, this.request.FILES if sent else None, initial=typed)
    chosen = OfferModeForm(this.request.POST if sent else None, initial={"mode": mode} | typed)
    if sent and form.is_valid() and chosen.is_valid():
        test = _offer(this, form, chosen.cleaned_data["mode"] if cluster is None else mode, cluster)
        if test is not None:
            return redirect(_offer_url(test))
    ways = [(name, str(WAY_NAMES[name]), name == way) for name in WAYS]
    return edit_page(
        this,
        "clusters/given.html",
        form,
        title=title,
        submit=_("Test the connection"),
        trail=trail,
        ways=ways,
        way=way,
        mode_field=chosen["mode"] if cluster is None else None,
        modes=MODES if cluster is None else [mode],
        mode=mode,
    )


def _offer(this: Page, form: ConnectionForm, mode: str, cluster: Cluster | None) -> ConnectionTest | None:
    try:
        test = connection_services.offer(
            offered=form.offered(), mode=mode, actor=this.access.actor, owner_id=this.user.pk, cluster=cluster
        )
    except DomainError as error:
        form.refuse(error)
        return None
    start_test(test, owner=this.user, actor=this.access.actor)
    return test


def _offer_url(test: ConnectionTest) -> str:
    if test.cluster is None:
        return reverse("console:cluster_offer", args=[test.pk])
    return reverse("console:connection_offer", args=[test.cluster.slug, test.pk])


@takes_forms
@page(section="clusters", topics="jobs")
def cluster_offer(this: Page, pk: int) -> HttpResponse:
    need_administrator(this)
    test = get_object_or_404(visible_tests(this.access), pk=pk, cluster__isnull=True, offer=True)
    trail = [(_("Clusters"), reverse("console:clusters")), (_("Connect a cluster"), reverse("console:cluster_new"))]
    form = ConnectForm(this.request.POST or None, failed=test.verdict in ("failed", "running"))
    if _other_context(this):
        return _with_context(this, test)
    if this.request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        done = form.saved(
            connection_services.connect,
            test=test,
            name=values["name"],
            slug=values["slug"],
            accept=values.get("accept", False),
            reason=values["reason"],
            actor=this.access.actor,
        )
        if done:
            messages.success(this.request, _("%(cluster)s is connected.") % {"cluster": values["name"]})
            made = visible_tests(this.access).get(pk=pk).cluster
            return redirect("console:connection", made.slug if made else "")
    return _tested(this, test, form, trail, _("Test and connect"), _("Connect it"))


@takes_forms
@page(section="connection", topics="jobs")
def connection_offer(this: Page, pk: int) -> HttpResponse:
    need_administrator(this)
    test = get_object_or_404(visible_tests(this.access), pk=pk, cluster=this.cluster, offer=True)
    form = TakeForm(this.request.POST or None, failed=test.verdict in ("failed", "running"))
    if _other_context(this):
        return _with_context(this, test)
    if this.request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        done = form.saved(
            connection_services.replace,
            test=test,
            accept=values.get("accept", False),
            reason=values["reason"],
            actor=this.access.actor,
        )
        if done:
            text = _("%(cluster)s is reached by the new connection from now on.")
            messages.success(this.request, text % {"cluster": this.cluster.name})
            return redirect("console:connection", this.cluster.slug)
    return _tested(this, test, form, _trail(this), _("Replace the connection"), _("Save"))


def _other_context(this: Page) -> bool:
    return this.request.method == "POST" and this.request.POST.get("act") == "context"


def _with_context(this: Page, test: ConnectionTest) -> HttpResponse:
    try:
        made = connection_services.choose_context(
            test=test, context=this.request.POST.get("context", ""), actor=this.access.actor, owner_id=this.user.pk
        )
    except DomainError as error:
        messages.error(this.request, error.message)
        return redirect(_offer_url(test))
    start_test(made, owner=this.user, actor=this.access.actor)
    return redirect(_offer_url(made))


def _tested(
    this: Page, test: ConnectionTest, form: TakeForm, trail: list[tuple[str, str]], title: str, submit: str
) -> HttpResponse:
    return edit_page(
        this,
        "clusters/offer.html",
        form,
        title=title,
        submit=submit,
        trail=trail,
        authorities=authorities(test.ca_certificate),
        kind_word=ConnectionKind(test.connection_kind).label,
        correction=correction_of(test),
        **shown(test),
    )


@page(section="connection", topics="jobs clusters queues")
def connection(this: Page) -> HttpResponse:
    need_whole_sight(this)
    cluster = this.cluster
    newest, running = newest_test(cluster), running_test(cluster)
    tests = list(visible_tests(this.access).filter(cluster=cluster).order_by("-id")[:10])
    soon, look = cluster.credentials_expire_at, drift_look(cluster)
    return this.render(
        "clusters/connection.html",
        {
            "push": last_pushes(this.access, [cluster]).get(cluster.pk),
            "unmanaged": len(look.unmanaged) if look else None,
            "running": running,
            "tests": tests,
            "modes": ClusterMode.choices,
            "authorities": authorities(cluster.ca_certificate),
            "kind_word": ConnectionKind(cluster.connection_kind).label,
            "ended": soon is not None and soon <= timezone.now(),
            **(shown(newest) if newest else {}),
        },
    )


@page(section="connection")
def connection_tested(this: Page, pk: int) -> HttpResponse:
    need_whole_sight(this)
    test = get_object_or_404(visible_tests(this.access), pk=pk, cluster=this.cluster)
    return this.render("clusters/tested.html", {"trail": _trail(this), **shown(test)})


@acts_by_post
@page(section="connection")
def connection_test(this: Page) -> HttpResponse:
    need_administrator(this)
    mode = this.request.POST.get("mode", "")
    try:
        test = connection_services.begin_test(
            cluster=this.cluster, mode=mode, actor=this.access.actor, owner_id=this.user.pk
        )
    except DomainError as error:
        messages.error(this.request, error.message)
    else:
        start_test(test, owner=this.user, actor=this.access.actor)
    return redirect("console:connection", this.cluster.slug)


@takes_forms
@page(section="connection")
def disconnect(this: Page) -> HttpResponse:
    need_administrator(this)
    form = ReasonForm(this.request.POST or None)
    if form.is_valid() and form.saved(
        connection_services.disconnect, cluster=this.cluster, actor=this.access.actor, **form.values()
    ):
        messages.success(this.request, _("%(cluster)s is disconnected.") % {"cluster": this.cluster.name})
        return redirect("console:connection", this.cluster.slug)
    title = _("Disconnect %(cluster)s?") % {"cluster": this.cluster.name}
    return edit_page(this, "clusters/disconnect.html", form, title=title, submit=_("Disconnect"), trail=_trail(this))


@takes_forms
@page(section="clusters")
def cluster_remove(this: Page) -> HttpResponse:
    need_administrator(this)
    cluster = this.cluster
    form = RemoveForm(this.request.POST or None)
    if form.is_valid() and form.saved(remove_cluster, cluster=cluster, actor=this.access.actor, **form.values()):
        messages.success(this.request, _("%(cluster)s is removed.") % {"cluster": cluster.name})
        return redirect("console:clusters")
    title = _("Remove %(cluster)s?") % {"cluster": cluster.name}
    counts = hanging_on(cluster)
    along = [(str(word), counts[kind]) for kind, word in KINDS.items() if kind in counts]
    return edit_page(
        this, "clusters/remove.html", form, title=title, submit=_("Remove for good"), trail=_trail(this), along=along
    )


@takes_forms
@page(section="connection")
def cluster_settings(this: Page) -> HttpResponse:
    need_administrator(this)
    cluster = this.cluster
    names = [name for name in SettingsForm.base_fields if name not in ("reason", "version")]
    start = {name: getattr(cluster, name) for name in names}
    start |= {"scheduler_names": ", ".join(cluster.scheduler_names), "version": cluster.version}
    form = SettingsForm(this.request.POST or None, initial=start)
    values = form.cleaned_data if form.is_valid() else {}
    if values and form.saved(
        services.set_settings,
        cluster=cluster,
        values={name: values[name] for name in names},
        version=values["version"],
        reason=values["reason"],
        actor=this.access.actor,
    ):
        messages.success(this.request, _("The settings are saved."))
        return redirect("console:connection", cluster.slug)
    return edit_page(this, "clusters/settings.html", form, title=_("Settings"), submit=_("Save"), trail=_trail(this))


def _trail(this: Page) -> list[tuple[str, str]]:
    return trail_of(this, _("Connection"), "connection")


@page(section="clusters", topics="sessions clusters alerts")
def clusters(this: Page) -> HttpResponse:
    return this.render("clusters/clusters.html")


@takes_forms
@page(section="overview")
def pause(this: Page) -> HttpResponse:
    if not this.access.administers:
        raise PermissionDenied
    cluster = this.cluster
    present = {"act": RESUME if cluster.paused else PAUSE}
    form = PauseForm(present | this.request.POST.dict() if this.request.method == "POST" else None, initial=present)
    if form.is_valid():
        act = services.resume if form.cleaned_data["act"] == RESUME else services.pause
        try:
            act(cluster=cluster, actor=this.access.actor, reason=form.cleaned_data["reason"])
        except DomainError as error:
            faster = _(
                "It was changed meanwhile: this page shows the present state. Your reason is kept; decide again."
            )
            form.add_error(None, f"{error.message} {faster}" if error.code == "conflict" else error.message)
            form.data = {**form.data, "act": RESUME if cluster.paused else PAUSE}  # what the page asks about now
        else:
            text = _("%(cluster)s is paused.") if cluster.paused else _("%(cluster)s goes on.")
            messages.success(this.request, text % {"cluster": cluster.name})
            return redirect("console:cluster_overview", cluster.slug)
    if "act" in form.errors:
        form.data = {**form.data, **present}  # what is sent next is what the page asks about
    # `clusters_now` has put session_id beside the row.
    first = first_unsent(cluster, cluster.session_id) if cluster.paused else None  # type: ignore[attr-defined]
    return this.render("clusters/pause.html", {"form": form, "first_unsent": first}, status=400 if form.errors else 200)
