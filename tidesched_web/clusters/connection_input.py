from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from tidesched_web.clusters.addresses import checked_address
from tidesched_web.clusters.kubernetes.connection import MOST_TOKEN, BadConnection, Connection, check_server_name
from tidesched_web.clusters.kubernetes.credential_facts import Facts, authorities, facts_of
from tidesched_web.clusters.kubernetes.in_cluster import ADDRESS
from tidesched_web.clusters.kubernetes.kubeconfig import contexts_of, read_kubeconfig
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


def by_kubeconfig(text: str, *, context: str = "") -> Offered:
    """The named context, else the current one, else the only one."""
    try:
        contexts, current = contexts_of(text)
        chosen = context or current or (contexts[0] if len(contexts) == 1 else "")
        if context and context not in contexts:
            there = listed(contexts)
            text = _("The file has no context %(name)s. It has: %(there)s.")
            raise DomainError.for_field(
                "/context", text % {"name": repr(context), "there": there}, code="against_rules"
            )
        if not context and contexts and current and current not in contexts:
            there = listed(contexts)
            text = _("The file's current-context %(name)s is none of its contexts. It has: %(there)s.")
            raise DomainError.for_field(
                "/context", text % {"name": repr(current), "there": there}, code="against_rules"
            )
        connection = read_kubeconfig(text, context=chosen)
        _check_authorities(connection)
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
    if len(token) > MOST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        text = _("This is not a token: it has blanks, line ends or other signs in it.")
        raise DomainError.for_field("/token", text, code="against_rules")
    server_name = tls_server_name.strip()
    connection = Connection(address, ca_certificate=ca_certificate, token=token, tls_server_name=server_name)
    try:
        check_server_name(server_name, "tls_server_name")
        _check_authorities(connection)
    except BadConnection as error:
        said = message_of(error)
        raise DomainError.for_field(f"/{error.path}", f"{said[:1].upper()}{said[1:]}.", code="against_rules") from None
    return Offered(ConnectionKind.TOKEN, connection, facts_of(connection))


def by_own_pod() -> Offered:
    """The cluster that TideSched itself runs in; its workers read the pod's token from its file."""
    return Offered(ConnectionKind.IN_CLUSTER, Connection(ADDRESS), Facts("", None))


def _check_authorities(connection: Connection) -> None:
    """Without an authority of its own the server has to have a certificate that the whole world trusts."""
    authorities(connection.ca_certificate)
