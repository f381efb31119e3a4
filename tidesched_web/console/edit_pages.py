import json
from collections.abc import Mapping, Sequence

from django.http import HttpResponse
from django.urls import reverse

from tidesched_web.changes.removal_selectors import ClusterRemoval
from tidesched_web.clusters.models import Cluster
from tidesched_web.console.forms.edit import EditForm
from tidesched_web.console.forms.meanwhile import with_opened
from tidesched_web.console.page import Page
from tidesched_web.quota.dependent_selectors import Dependents


def trail_of(this: Page, word: str, view: str) -> list[tuple[str, str]]:
    slug = this.cluster.slug
    overview = (this.cluster.name, reverse("console:cluster_overview", args=[slug]))
    return [overview, (word, reverse(f"console:{view}", args=[slug]))]


def edit_page(
    this: Page, template: str, form: EditForm, *, title: str, submit: str, trail: list[tuple[str, str]], **more: object
) -> HttpResponse:
    with_opened(form)
    context = {"form": form, "title": title, "submit": submit, "trail": trail, "back": trail[-1][1], **more}
    return this.render(template, context, status=form.refused_as)


def delete_page(
    this: Page,
    form: EditForm,
    *,
    title: str,
    submit: str,
    trail: list[tuple[str, str]],
    dependents: Sequence[Dependents],
    protected: Sequence[str] = (),
    template: str = "layouts/delete.html",
    **more: object,
) -> HttpResponse:
    blocked = bool(protected) or any(group.blocks for group in dependents)
    context = {
        "form": form,
        "title": title,
        "submit": submit,
        "trail": trail,
        "back": trail[-1][1],
        "dependents": dependents,
        "goes_along": [group for group in dependents if not group.blocks],
        "protected": protected,
        "blocked": blocked,
        **more,
    }
    return this.render(template, context, status=form.refused_as)


def quota_ways(clusters: Sequence[Cluster], edits: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"cluster": cluster, "edits": json.dumps(edits)} for cluster in clusters]


def removal_ways(removals: Sequence[ClusterRemoval]) -> list[dict[str, object]]:
    return [{"removal": one, "edits": json.dumps(dict(one.edits))} for one in removals]
