import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from tidesched_web.changes import services, tree_file
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.tree_document import Edits, differences, merged
from tidesched_web.changes.tree_import import edits_to
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import card_aliases, visible_clusters
from tidesched_web.common.actors import OPERATOR
from tidesched_web.common.commands import answers_domain_errors
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access

DIFFERENT = 1
_ACCESS = Access(actor=OPERATOR, everything=True, administers=True)


class Command(BaseCommand):
    """`diff` exits with 0 where the tree says what the file says, with 1 where it differs, with 2 for a bad file."""

    help = "Export the quota tree of a cluster, compare it with a file, or make it say what a file says."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        export = acts.add_parser("export", help="write the tree to stdout")
        diff = acts.add_parser("diff", help="say what `apply` would change")
        apply = acts.add_parser("apply", help="make the tree say what the file says, as one change")
        for act in (export, diff, apply):
            act.add_argument("--cluster", help="its slug; needed where there are several")
        for act in (diff, apply):
            act.add_argument("file", help="the file, - for stdin")
            act.add_argument("--keep", action="store_true", help="what the file does not name stays")
        apply.add_argument("--reason", required=True)

    @answers_domain_errors
    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["act"])(self._cluster(options["cluster"]), options)

    def _cluster(self, slug: str | None) -> Cluster:
        clusters = {cluster.slug: cluster for cluster in visible_clusters(_ACCESS)}
        if slug is None and len(clusters) == 1:
            return next(iter(clusters.values()))
        if slug not in clusters:
            raise DomainError("invalid", f"Name one of the clusters with --cluster: {', '.join(sorted(clusters))}.")
        return clusters[slug]

    def export(self, cluster: Cluster, options: dict[str, Any]) -> None:
        self.stdout.write(tree_file.dumps(read_tree(cluster), cluster=cluster.slug), ending="")

    def diff(self, cluster: Cluster, options: dict[str, Any]) -> None:
        edits = self._edits(cluster, options)
        self._tell(cluster, edits)
        plan = services.check(cluster=cluster, edits=edits, access=_ACCESS)
        for error in plan["errors"]:
            self.stderr.write(f"error: {error['object']}{error['field']}: {error['detail']}")
        if edits:
            sys.exit(DIFFERENT)

    def apply(self, cluster: Cluster, options: dict[str, Any]) -> None:
        edits = self._edits(cluster, options)
        if not edits:
            self.stdout.write("The tree says so already.")
            return
        self._tell(cluster, edits)
        change = services.carry_out(
            cluster=cluster, edits=edits, access=_ACCESS, reason=options["reason"], source="import"
        )
        self.stdout.write(f"change {change.pk}: {change.state}")

    def _edits(self, cluster: Cluster, options: dict[str, Any]) -> Edits:
        name = options["file"]
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DomainError("invalid", f"{name} cannot be read: {error}") from None
        wanted = canonical_cards(tree_file.loads(text), card_aliases(cluster))
        return edits_to(read_tree(cluster), wanted, keep=options["keep"])

    def _tell(self, cluster: Cluster, edits: Edits) -> None:
        before = read_tree(cluster)
        after = merged(before, {key: _plain(patch) for key, patch in edits.items()})
        for line in differences(before, after):
            sign = "+" if line.before is None else "-" if line.after is None else "~"
            figures = [str(figure) for figure in (line.before, line.after) if figure is not None]
            self.stdout.write(f"{sign} {line.object}{line.field}: {' -> '.join(figures)}")


def _plain(patch: Any) -> Any:
    return patch if patch is None else {name: value for name, value in patch.items() if name != "replace"}
