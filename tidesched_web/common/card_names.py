"""Short names of card types, for labels; the canonical name stays on hover and in every export."""

import re

from django.utils.translation import gettext as _

_MAKER = re.compile(r"^(NVIDIA|AMD|Intel|Huawei|Ascend)[- ]")
_MIG = re.compile(r"^(?P<board>.*)/mig-(?P<profile>.+?)(-mixed)?$")
_MPS = re.compile(r"^(?P<board>.*)/mps-(?P<memory>\d+)g\*1/(?P<parts>\d+)$")


def card_label(name: str) -> str:
    """`NVIDIA-H200` → H200, `NVIDIA-H200/mig-1g.18gb-mixed` → H200 MIG 1g.18gb, `A|B` → A or B."""
    if "|" in name:
        return _(" or ").join(card_label(part) for part in name.split("|"))
    if slice_ := _MIG.match(name):
        return f"{card_label(slice_['board'])} MIG {slice_['profile']}"
    if share := _MPS.match(name):
        return f"{card_label(share['board'])} MPS 1/{share['parts']}"
    return _MAKER.sub("", name).replace("GeForce-", "").replace("Tesla-", "") or name
