from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import at_revision, revision_at_version, row_versions
from tidesched_web.changes.services.planning import after_of
from tidesched_web.changes.tree_document import Difference, Documents, differences, pointer
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError


@dataclass(frozen=True)
class Reviewed:
    """``version``: the row as it was read (an ETag: any step of its life counts); ``revision``: what is reviewed;
    ``impact``: the job whose answer stood beside it."""

    version: int | None = None
    revision: int | None = None
    impact: int | None = None


def require_reviewed(change: QuotaChange, seen: Reviewed | None, *, done: bool = False) -> None:
    """``done``: it has happened already; then only edits since the review refuse it (RFC 9110, 13.1.1)."""
    if seen is None:
        return
    if seen.revision is not None and seen.revision != change.revision:
        raise _stale(change, seen.revision)
    if seen.version is not None and seen.version != change.version:
        revision = revision_at_version(change, seen.version)
        if revision != change.revision or not done:
            raise _stale(change, revision, seen.version)


def require_versions(cluster: Cluster, versions: Mapping[str, int]) -> None:
    now = row_versions(cluster, versions)
    for key, seen in versions.items():
        if now.get(key) != seen:
            text = _("%(object)s was changed since you looked at it.") % {"object": key}
            etag = {"etag": f'"{now[key]}"'} if key in now else {}
            raise DomainError("stale", text, etag)


def _stale(change: QuotaChange, revision: int, version: int = 0) -> DomainError:
    edited = edited_since(change, revision)
    if version > change.version:
        text = _("The version of change %(number)d is %(version)d, and If-Match names one that was never there.")
    elif revision != change.revision:
        text = _("Change %(number)d was edited after you opened it: look at what differs, then decide.")
    else:
        text = _("Change %(number)d has moved on since you opened it: look at it again.")
    extra = {
        "etag": f'"{change.version}"',
        "state": change.state,
        "edited_since": [found.as_json() for found in edited],
    }
    return DomainError("stale", text % {"number": change.pk, "version": change.version}, extra)


def edited_since(change: QuotaChange, revision: int) -> list[Difference]:
    old = at_revision(change, revision)
    if old is None:
        return []
    then, now = _made(old.base, old.edits), _made(change.base, change.edits)
    # An object that only one of them touches stands as its base in the other.
    keys = {*old.edits, *change.edits}
    known = {key: document for key, document in {**old.base, **change.base}.items() if document is not None}
    terms = [
        Difference("", pointer(name), old.terms[name] or None, value or None)
        for name, value in change.terms.items()
        if name in old.terms and (old.terms[name] or None) != (value or None)
    ]
    return [*differences(_filled(then, known, old.edits, keys), _filled(now, known, change.edits, keys)), *terms]


def _made(base: dict[str, dict[str, object] | None], edits: dict[str, object]) -> Documents:
    return after_of({key: document for key, document in base.items() if document is not None}, edits)


def _filled(made: Documents, known: Documents, edits: dict[str, object], keys: set[str]) -> Documents:
    return {
        key: made[key] if key in edits else known[key]
        for key in sorted(keys)
        if (key in made if key in edits else key in known)
    }
