from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import some_or_any
from tidesched_web.scheduling.models import Session, SessionState


class SessionFilter(BoundedFilterForm):
    state = forms.ChoiceField(label=_("State"), choices=some_or_any(SessionState.choices))
    decided = forms.ChoiceField(
        label=_("Decisions"), choices=[("", _("any")), ("yes", _("with decisions")), ("reclaims", _("with reclaims"))]
    )

    def apply(self, sessions: QuerySet[Session]) -> QuerySet[Session]:
        if state := self.value("state"):
            sessions = sessions.filter(state=state)
        decided = self.value("decided")
        if decided == "yes":
            sessions = sessions.filter(Q(counts__binds__gt=0) | Q(counts__evictions__gt=0))
        elif decided == "reclaims":
            sessions = sessions.filter(counts__reclaims__gt=0)
        if since := self.moment("from"):
            sessions = sessions.filter(now__gte=since)
        if until := self.moment("to"):
            sessions = sessions.filter(now__lt=until)
        return sessions
