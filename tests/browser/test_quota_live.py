"""The whole way of a change of quota on the running system with its simulated cluster."""

from __future__ import annotations

from tests.browser.conftest import Opener
from tests.browser.demo import Demo
from tests.browser.journey import Place, raise_the_quota, roll_back


def test_from_a_waiting_gang_to_the_roll_back(demo: Demo, open_browser: Opener) -> None:
    watched = open_browser(demo.address)
    place = Place("demo", demo.ask, promised=160, sibling=12)
    roll_back(place, watched, raise_the_quota(place, watched, pictures="quota-live"))
