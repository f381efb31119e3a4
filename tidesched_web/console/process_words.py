import re

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

_SAID: dict[str, Promise] = {
    # Activities.
    "process": gettext_lazy("the process itself"),
    "looking for clusters": gettext_lazy("looking for clusters"),
    "renewing leases": gettext_lazy("renewing leases"),
    # How a process stood, and the steps of a session.
    "stopped": gettext_lazy("stopped"),
    "starting": gettext_lazy("starting"),
    "silent": gettext_lazy("silent"),
    "waiting for the first picture of the cluster": gettext_lazy("waiting for the first picture of the cluster"),
    "between sessions": gettext_lazy("between sessions"),
    "holding the lease": gettext_lazy("holding the lease"),
    "settling": gettext_lazy("settling"),
    "taking the snapshot": gettext_lazy("taking the snapshot"),
    "deciding": gettext_lazy("deciding"),
    "writing": gettext_lazy("writing"),
    "recording": gettext_lazy("recording"),
    "recording what others did": gettext_lazy("recording what others did"),
    "sending": gettext_lazy("sending"),
    # What ended it.
    "its own watchdog": gettext_lazy("its own watchdog"),
    "supervisor": gettext_lazy("the supervisor"),
    "probe": gettext_lazy("the probe"),
}
# The role of a process, and what it does.
_ROLES: dict[str, Promise] = {
    "sessions": gettext_lazy("scheduling sessions"),
    "push": gettext_lazy("sends to the clusters"),
    "work": gettext_lazy("jobs in the background"),
    "what-if": gettext_lazy("impact, replays and trials"),
    "beat": gettext_lazy("clock of repeated tasks"),
    "web": gettext_lazy("pages and REST API"),
}
_OF_CLUSTER = re.compile(r"sessions of cluster (\d+)")


def role_words(role: str) -> str:
    return str(_ROLES.get(role, ""))


def said(text: str) -> str:
    if found := _OF_CLUSTER.fullmatch(text):
        return _("sessions of cluster %(number)s") % {"number": found[1]}
    return str(_SAID.get(text, text))
