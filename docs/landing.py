"""Makes what the landing page and the README show: `python docs/landing.py` writes docs/assets/cam.gif, and cam.json,
of which the site makes a page to play (docs/stories.py).

The cam of the demo under a spring that is too weak: its follower is thrown off at a corner, bounces, and is thrown off
again. The picture is slowed down where that happens.
"""

import io
import pathlib
import re

import jax
import matplotlib
import numpy as np
from PIL import Image

import mbsjax as mbs
from mbsjax import plots
from mbsjax.demo import SPRUNG, lost_contact


FOLDER = pathlib.Path(__file__).parent / "assets"
BLUE, RED, GRAY = "#0072B2", "#D55E00", "#8a8a8a"


def instants(ts: np.ndarray) -> np.ndarray:
    """Outputs to draw: the flights, between 5.3 and 7.5 s, four times as closely as the rest of the turn."""
    times = np.concatenate(
        [np.arange(0.0, 5.3, 0.16), np.arange(5.3, 7.5, 0.04), np.arange(7.5, ts[-1], 0.16)]
    )  # fmt: skip
    return np.searchsorted(ts, times)


def frame(sol: mbs.Solution, row: int) -> Image.Image:
    """The mechanism on the left; on the right its contact force and gap, up to this instant in color."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(7.2, 3.0), dpi=100)
    left = figure.add_axes((0.0, 0.02, 0.5, 0.96))
    plots.mechanism(sol, row, forces=False, axes=left)
    left.set(xlim=(-46, 58), ylim=(-43, 43), xticks=[], yticks=[], title="", xlabel="", ylabel="")
    left.axis("off")
    ts, contact = np.asarray(sol.ts), sol.contact("C23")
    apart = not contact.active[row]
    left.text(-44, 36, "apart" if apart else "in contact", color=RED if apart else BLUE, size=13, weight="bold")
    for place, values, color, name in ((0.57, contact.force, BLUE, "contact force"), (0.12, contact.gap, RED, "gap")):
        axes = figure.add_axes((0.57, place, 0.41, 0.34))
        axes.plot(ts, values, color="#dddddd", linewidth=1.2)
        axes.plot(ts[: row + 1], values[: row + 1], color=color, linewidth=1.6)
        axes.plot(ts[row], values[row], "o", color=color, markersize=5)
        axes.set(xlim=(0, ts[-1]), yticks=[0], xticks=[] if place > 0.5 else [0, 4, 8, 12])
        axes.set_title(name, size=9, loc="left", color=color, pad=3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, colors=GRAY)
    axes.set_xlabel("time", size=8, color=GRAY, labelpad=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    return Image.open(buffer).convert("RGB")


def main() -> None:
    matplotlib.use("Agg")
    jax.config.update("jax_enable_x64", True)
    sol = lost_contact(SPRUNG, 629)
    page = mbs.view(sol, title="A cam throws its follower off").html
    (FOLDER / "cam.json").write_text(re.findall('id="data">(.*?)</script>', page, re.S)[0] + "\n", encoding="utf-8")
    palette = frame(sol, int(np.argmax(sol.contact("C23").gap))).quantize(48, dither=Image.Dither.NONE)  # all colors
    rows = instants(np.asarray(sol.ts))
    first, *others = (frame(sol, row).quantize(palette=palette, dither=Image.Dither.NONE) for row in rows)
    first.save(FOLDER / "cam.gif", save_all=True, append_images=others, duration=60, loop=0, optimize=True)


if __name__ == "__main__":
    main()
