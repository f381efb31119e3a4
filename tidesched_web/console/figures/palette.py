"""The colours of the figures in both themes: those of `static/css/console.css` (a test compares the two)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """One theme."""

    inference: str
    training: str
    borrowed_ink: str
    idle: str
    foreign: str
    waiting: str
    reclaimed: str
    tick: str
    text: str
    grid: str
    surface: str
    inference_soft: str
    training_soft: str
    # Steps of one thing that mean no service type: told apart by lightness and pattern.
    steps: tuple[str, ...]


LIGHT = Palette(
    inference="#0072b2",
    training="#009e73",
    borrowed_ink="#00543d",
    idle="#ccd2da",
    foreign="#8a94a3",
    waiting="#e69f00",
    reclaimed="#d55e00",
    tick="#1b2430",
    text="#46505e",
    grid="#e3e7ec",
    surface="#ffffff",
    inference_soft="#dcecf7",
    training_soft="#d9f1e9",
    steps=("#1f2a38", "#8895a7", "#46566b", "#b3bdca", "#64748b", "#d3dae2"),
)
DARK = Palette(
    inference="#4aa3dc",
    training="#2bbf94",
    borrowed_ink="#0b3d2f",
    idle="#465263",
    foreign="#8592a5",
    waiting="#f0b437",
    reclaimed="#f0803c",
    tick="#f3f6fa",
    text="#c3cbd7",
    grid="#2b3848",
    surface="#182433",
    inference_soft="#12344b",
    training_soft="#0e3b2f",
    steps=("#e2e8f0", "#64748b", "#b3bfce", "#46566b", "#8c9bb0", "#33425a"),
)


def palette(theme: str) -> Palette:
    """The palette of a theme; anything but "dark" is light."""
    return DARK if theme == "dark" else LIGHT
