"""The colours of the figures in both themes: those of `static/css/console.css` (a test compares the two)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
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
    # Steps of one thing that mean no service type: hues of their own, distinct in lightness and pattern too.
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
    steps=("#332288", "#cc6677", "#8a8a2b", "#882255", "#9a7fc7", "#64748b"),
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
    steps=("#a99cf5", "#e08a99", "#c9c95e", "#c56a98", "#d5c7f2", "#8c9bb0"),
)


def palette(theme: str) -> Palette:
    return DARK if theme == "dark" else LIGHT


def blended(pale: str, strong: str, share: float) -> str:
    ends = [(int(pale[at : at + 2], 16), int(strong[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in ends)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2 between two colours, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
