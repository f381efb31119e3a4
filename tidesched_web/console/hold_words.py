from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

# Why a session decides and shows, but sends nothing.
HOLDS: dict[str, Promise] = {
    "observe": gettext_lazy("The cluster is in mode observe: decisions are shown, nothing is sent."),
    "quota": gettext_lazy("The cluster is in mode quota: Volcano schedules, decisions are only shown."),
    "paused": gettext_lazy("The cluster is paused: decisions are shown, nothing is sent."),
    "policy_unreleased": gettext_lazy(
        "The policy is new: what it would do is shown, and nothing is sent until it is released."
    ),
    "mode_changed": gettext_lazy("The mode has changed: what it would do is shown once, then it is done."),
    "guard": gettext_lazy("An alert waits for a person: nothing is sent until it is resolved."),
    "foreign_scheduler": gettext_lazy("Another scheduler works in this cluster: nothing is sent."),
    "gangs_per_minute": gettext_lazy("A guard stopped it: too many gangs would have been evicted within a minute."),
    "cards_per_minute": gettext_lazy("A guard stopped it: too many cards would have been taken back within a minute."),
    "share_of_training": gettext_lazy(
        "A guard stopped it: too large a share of the training would have been evicted at once."
    ),
}
