from typing import Any
from zlib import crc32

from django.utils.translation import gettext as _

from tidesched_web.console.alert_words import alert_sentence
from tidesched_web.console.page import Page

# The worst first.
TONES = {"critical": "failed", "warning": "waiting", "info": "admitted", "": "quiet"}


def cluster_banners(this: Page) -> list[dict[str, Any]]:
    """Alerts that read the same to the reader are one, with their number."""
    cluster, whole = this.cluster, this.access.everything
    found: dict[str, dict[str, Any]] = {}

    def say(severity: str, text: str, **more: Any) -> None:
        found.setdefault(
            text,
            {"severity": severity, "tone": TONES[severity], "text": text, "key": crc32(text.encode()), "n": 0, **more},
        )["n"] += 1

    if cluster.disconnected_at:
        text = _("It is disconnected: no session runs and nothing is sent. What is known of the cluster stays.")
        view = "connection_replace" if this.access.administers else ""
        say("warning", text, view=view, way=_("Connect again"), since=cluster.disconnected_at)
    elif cluster.test_verdict == "failed" and whole:  # type: ignore[attr-defined]  # of `clusters_now`
        text = _("The connection test has found that something is missing for this cluster's mode.")
        say("warning", text, view="connection", way=_("Look at it"))
    if not cluster.session_id:  # type: ignore[attr-defined]  # annotated
        text = _(
            "No session has run for this cluster yet. Numbers appear with the first one; if that takes more than a "
            "minute, see whether the worker runs."
        )
        say("", text)
    for row in cluster.alert_rows:  # type: ignore[attr-defined]  # annotated
        text = alert_sentence(row["code"], row["numbers"] or {}, row["message"], everything=whole)
        say(row["severity"], text, view="alerts", way=_("Look at it"))
    return sorted(found.values(), key=lambda banner: list(TONES).index(banner["severity"]))
