from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.tree_rules import CPU, MEMORY, Breach

_UNITS = {CPU: 1000, MEMORY: 1024}


def service_word(service_type: str) -> str:
    return str(ServiceType(service_type).label).lower()


def resource_figure(resource: str, figure: float) -> str:
    """``34 × H200``, ``1.5 CPU cores``, ``512 GiB of memory``; cpu in milli, memory in MiB."""
    if resource == CPU:
        return _("%(n)s CPU cores") % {"n": number(resource, figure)}
    if resource == MEMORY:
        return _("%(n)s GiB of memory") % {"n": number(resource, figure)}
    return f"{number(resource, figure)} × {card_label(resource)}"


def number(resource: str, figure: float) -> str:
    return plain(figure / _UNITS.get(resource, 1))


def plain(figure: float) -> str:
    """A number as people write it: no decimals that say nothing."""
    return f"{figure:,.3f}".rstrip("0").rstrip(".")


def excess_text(breach: Breach, whose: str) -> str:
    said = {
        "whose": whose,
        "requested": resource_figure(breach.resource, breach.requested),
        "service_type": service_word(breach.service_type),
        "limit": number(breach.resource, breach.limit),
        "excess": number(breach.resource, breach.excess),
    }
    if whose:
        text = _("%(whose)s gives out %(requested)s for %(service_type)s, but has %(limit)s: %(excess)s too many.")
        return text % said
    return (
        _(
            "%(requested)s are given out for %(service_type)s, but the hardware of the cluster allows %(limit)s: "
            "%(excess)s too many."
        )
        % said
    )


def give_way_text(name: str, resource: str, quota: float, used: float) -> str:
    return _("%(name)s could give way: it has %(quota)s, of which %(used)s are in use.") % {
        "name": name, "quota": resource_figure(resource, quota), "used": plain(used)
    }  # fmt: skip
