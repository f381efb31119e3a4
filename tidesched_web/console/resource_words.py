from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.console import amounts


def resource_label(resource: str | None) -> str:
    if resource == "cpu":
        return _("CPU cores")
    if resource == "memory":
        return _("memory")
    if resource == "pods":
        return _("pods")
    if resource == "ephemeral-storage":
        return _("local storage")
    if resource and resource.startswith("hugepages-"):
        return _("huge pages of %(size)s") % {"size": resource.removeprefix("hugepages-")}
    return card_label(resource) if resource else _("cards")


def in_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def resource_amount(resource: str | None, value: float | None) -> str:
    if value is None:
        return "–"
    if resource == "cpu":
        return amounts.number(value / 1000)
    if resource and in_bytes(resource):
        return f"{amounts.number(value / 1024**3)} GiB"
    return amounts.number(value)


def how_many(resource: str | None, value: float) -> int:
    """What singular and plural of an amount are chosen by: one, or several. A share of a card is no card yet."""
    shown = value / 1000 if resource == "cpu" else value / 1024**3 if resource and in_bytes(resource) else value
    return 1 if shown == 1 else 2


def counted(resource: str | None, amount: float) -> str:
    sign = " " if resource in ("cpu", "pods") or (resource and in_bytes(resource)) else " × "
    return f"{resource_amount(resource, amount)}{sign}{resource_label(resource)}"
