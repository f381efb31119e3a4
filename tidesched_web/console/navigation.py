from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

COOKIE = "nav_closed"
# The parts of pages that a reader has folded away, by name.
FOLDED_COOKIE = "parts_closed"
SETTINGS = "settings"


@dataclass(frozen=True)
class Entry:
    section: str
    view: str
    icon: str
    word: Promise | str
    of_cluster: bool = True
    whole_sight: bool = False
    of_tenants: bool = False
    also: tuple[str, ...] = ()
    count: str = ""
    writers: bool = False
    words: Promise | str = ""

    def holds(self, section: str) -> bool:
        return section == self.section or section in self.also


@dataclass(frozen=True)
class Group:
    name: str
    word: Promise | str
    entries: tuple[Entry, ...]


# What people come for stands above; what is set up once and looked at seldom stands below Settings.
GROUPS = (
    Group(
        "",
        "",
        (
            Entry("home", "overview", "users", _("My tenants"), of_cluster=False, of_tenants=True),
            Entry("overview", "cluster_overview", "layout-dashboard", _("Overview")),
            Entry("inbox", "inbox", "user-check", _("Waiting for you"), of_cluster=False, writers=True, count="inbox"),
        ),
    ),
    Group(
        "quota",
        _("Quota"),
        (
            Entry("quota", "quota_tree", "list-tree", _("Quota tree")),
            Entry("queues", "queues", "stack-2", _("Queues")),
            Entry("changes", "changes", "git-compare", _("Changes"), words=_("drafts, approval, roll back")),
            Entry("tide_plans", "tide_plans", "calendar-time", _("Tide plans"), words=_("lending, layers, calendar")),
        ),
    ),
    Group(
        "scheduling",
        _("Scheduling"),
        (
            Entry("gangs", "gangs", "packages", _("Gangs"), words=_("PodGroups, jobs, pods, waiting")),
            Entry("reclaims", "reclaims", "arrow-back-up", _("Reclaims"), words=_("evictions, preemption, receipts")),
            Entry("nodes", "nodes", "server-2", _("Nodes")),
            Entry("sessions", "sessions", "activity", _("Sessions")),
        ),
    ),
    Group(
        "watch",
        _("To look at"),
        (
            Entry("alerts", "alerts", "bell", _("Alerts"), count="alert"),
            Entry(
                "drift", "drift", "arrows-split-2", _("Drift"), count="drift", words=_("push, refused, changed by hand")
            ),
            Entry("audit", "audit", "history", _("Audit log"), of_cluster=False),
        ),
    ),
    Group(
        "owners",
        _("Tenants and people"),
        (
            Entry("tenants", "tenants", "users", _("Tenants"), of_cluster=False),
            Entry("projects", "projects", "folder", _("Projects"), of_cluster=False),
            Entry("users", "users", "user-circle", _("Users"), of_cluster=False, whole_sight=True),
        ),
    ),
    Group(
        SETTINGS,
        _("Settings"),
        (
            Entry("policy", "policy", "adjustments", _("Policy"), words=_("volcano-scheduler.conf, actions, plugins")),
            Entry("grants", "grants", "key", _("Namespace grants")),
            Entry(
                "tree_file",
                "tree_file",
                "file-text",
                _("Import and export"),
                also=("adoption",),
                words=_("tree file, YAML"),
            ),
            Entry("card_types", "card_types", "cpu", _("Card types")),
            Entry("priority_classes", "priority_classes", "tag", _("Priority classes")),
            Entry("business_lines", "business_lines", "briefcase", _("Business lines"), of_cluster=False),
            Entry(
                "connection",
                "connection",
                "link",
                _("Connection"),
                whole_sight=True,
                words=_("credentials, last push, mode"),
            ),
            Entry(
                "clusters", "clusters", "sitemap", _("Clusters"), of_cluster=False, words=_("connect a cluster, pause")
            ),
            Entry(
                "sign_in",
                "sign_in_settings",
                "key",
                _("Sign-in"),
                of_cluster=False,
                whole_sight=True,
                words=_("single sign-on, OIDC, groups, two-step sign-in, break-glass account"),
            ),
            Entry("jobs", "jobs", "hourglass", _("Jobs"), of_cluster=False),
            Entry(
                "status",
                "status",
                "device-desktop",
                _("Status"),
                of_cluster=False,
                whole_sight=True,
                words=_("health, workers, versions, processes"),
            ),
            Entry("help", "help", "help-circle", _("Words and help"), of_cluster=False),
        ),
    ),
)


# Pages that stand under others of the menu; the search finds them by their names.
UNLISTED = Group(
    "",
    "",
    (
        Entry("adoption", "adoption", "stack-2", _("Adopt queues"), whole_sight=True, words=_("adoption, take over")),
        Entry("profile", "profile", "user-circle", _("Profile"), of_cluster=False, words=_("language, time zone")),
        Entry("password", "password", "key", _("Change password"), of_cluster=False),
        Entry("tokens", "tokens", "key", _("Tokens"), of_cluster=False, words=_("REST API")),
    ),
)


def groups(
    *, section: str, cluster: str, everything: bool, writes: bool, closed: str, unlisted: bool = False
) -> list[dict[str, Any]]:
    shut = set(closed.split("."))
    found = []
    for group in (*GROUPS, UNLISTED) if unlisted else GROUPS:
        entries = [
            {
                "word": entry.word,
                "words": entry.words,
                "icon": entry.icon,
                "count": entry.count,
                "address": reverse(f"console:{entry.view}", args=[cluster] if entry.of_cluster else []),
                "current": entry.holds(section),
                "exact": section == entry.section,
            }
            for entry in group.entries
            if (cluster or not entry.of_cluster)
            and not (entry.of_tenants if everything else entry.whole_sight)
            and (writes or not entry.writers)
        ]
        if entries:
            is_open = group.name not in shut or any(one["current"] for one in entries)
            found.append({"name": group.name, "word": group.word, "entries": entries, "open": is_open})
    return found
