from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from tidesched_web.clusters.addresses import checked_address
from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection, check_secret_text, check_server_name
from tidesched_web.clusters.kubernetes.credential_facts import Facts, certificates, facts_of
from tidesched_web.clusters.kubernetes.in_cluster import ADDRESS
from tidesched_web.clusters.kubernetes.kubeconfig import contexts_of, read_kubeconfig, text_of
from tidesched_web.clusters.models import ConnectionKind
from tidesched_web.clusters.refusal_words import message_of, sentence_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.sentences import listed


@dataclass(frozen=True)
class Offered:
    kind: ConnectionKind
    connection: Connection
    facts: Facts
    context: str = ""
    contexts: list[str] = field(default_factory=list)
    kubeconfig: str = field(default="", repr=False)


def by_kubeconfig(given: str | bytes, *, context: str = "") -> Offered:
    """The named context, else the current one, else the only one."""
    try:
        text = text_of(given) if isinstance(given, bytes) else given
        contexts, current = contexts_of(text)
        chosen = context or current or (contexts[0] if len(contexts) == 1 else "")
        if chosen not in contexts and (context or (contexts and current)):
            said = _("The file's current-context %(name)s is none of its contexts. It has: %(there)s.")
            said = _("The file has no context %(name)s. It has: %(there)s.") if context else said
            values = {"name": repr(chosen), "there": listed(contexts)}
            raise DomainError.for_field("/context", said % values, code="against_rules")
        connection = read_kubeconfig(text, context=chosen)
        facts = facts_of(connection)
    except BadConnection as error:
        pointer = "/context" if error.path == "current-context" else "/kubeconfig"
        raise DomainError.for_field(pointer, sentence_of(error), code="against_rules") from None
    kind = ConnectionKind.CERTIFICATE if connection.client_certificate else ConnectionKind.TOKEN
    return Offered(kind, connection, facts, chosen, contexts, text)


def by_token(*, api_url: str, token: str, ca_certificate: str = "", tls_server_name: str = "") -> Offered:
    address, token = checked_address(api_url, simulated=False), token.strip()
    if not token:
        raise DomainError.for_field("/token", _("A token is needed."))
    server_name = tls_server_name.strip()
    try:
        check_secret_text(token, "token")
        check_server_name(server_name, "tls_server_name")
        authority = certificates(ca_certificate.strip())
    except BadConnection as error:
        said = message_of(error)
        raise DomainError.for_field(f"/{error.path}", f"{said[:1].upper()}{said[1:]}.", code="against_rules") from None
    connection = Connection(address, ca_certificate=authority, token=token, tls_server_name=server_name)
    return Offered(ConnectionKind.TOKEN, connection, facts_of(connection))


def by_own_pod() -> Offered:
    """The cluster that TideSched itself runs in; its workers read the pod's token from its file."""
    return Offered(ConnectionKind.IN_CLUSTER, Connection(ADDRESS), Facts("", None))
