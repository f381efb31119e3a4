"""The adapter knows no languages: it says these sentences as they stand here, with places for names and values."""

from collections.abc import Mapping

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from tidesched_web.clusters.kubernetes.connection import BadConnection

SAID = (
    _("this is not an address: %(detail)s"),
    _("an address such as https://10.0.0.1:6443 is needed"),
    _("user, password, query and fragment do not belong into the address"),
    _("its port is not a number from 1 to 65535"),
    _("%(host)s is not an address where a cluster may be"),
    _("https is needed: the token would cross the network in the clear"),
    _("the server must be verified; put its authority into certificate-authority-data"),
    _("basic authentication is not part of Kubernetes any more; use a token"),
    _("a proxy is chosen by the operator of this server, not by a cluster's file"),
    _("the file has no context"),
    _("name the context to use: %(contexts)s"),
    _("a client certificate needs its key, and a key its certificate"),
    _("a token or a client certificate is needed"),
    _("a kubeconfig of more than %(kib)s KiB is not read"),
    _("this is not YAML: %(detail)s"),
    _("this key is in one mapping twice (line %(line)s): keep one of the two"),
    _("this is not a kubeconfig (kind: Config)"),
    _("a mapping is needed"),
    _("there is no entry named %(name)s"),
    _("two entries are named %(name)s: each name may be there once"),
    _("a host name alone is needed, such as kubernetes.default.svc: no scheme, port or path"),
    _("would run a program on this server; use a token of a service account"),
    _("would read a file of this server; put its contents into %(place)s"),
    _("would act as somebody else; use a token of that account"),
    _("the file is no %(encoding)s text (line %(line)s): save it as UTF-8"),
    _("more than one document is in it: keep one"),
    _("is not the address of a proxy, such as http://proxy.example:3128"),
    _("a text is needed"),
    _("is not base64 of a PEM text"),
    _("has blanks, line ends or other signs in it, or is too long"),
    _("%(file)s cannot be read"),
    _("this process is in no pod of a cluster, or its pod has no token of a service account"),
    _("certificates in PEM are needed (-----BEGIN CERTIFICATE-----)"),
    _("certificate %(number)s in it cannot be read: it is cut off or damaged"),
    _("is not a private key in PEM without a password"),
    _("is not the key of the client certificate"),
)


def filled(said: str, values: Mapping[str, str]) -> str:
    found = gettext(said)
    return found % values if values else found


def message_of(error: BadConnection) -> str:
    return filled(error.said, error.values)


def sentence_of(error: BadConnection) -> str:
    return f"{error.path}: {message_of(error)}" if error.path else message_of(error)
