from django.utils.translation import gettext as _

from tidesched_web.clusters.kubernetes.connection import BadConnection, check_server
from tidesched_web.clusters.refusal_words import message_of
from tidesched_web.common.errors import DomainError


def checked_address(text: str, *, simulated: bool) -> str:
    """An admin may name this machine, and a simulated cluster by http elsewhere: its token opens nothing else."""
    try:
        return check_server(text, path="/api_url", loopback=True, plain=simulated)
    except BadConnection as error:
        shown = text.rpartition("@")[2]  # a password in front of the host is not repeated
        text = _("%(address)s cannot be a cluster's address: %(why)s.")
        values = {"address": repr(shown), "why": message_of(error)}
        raise DomainError.for_field("/api_url", text % values, code="against_rules") from None
