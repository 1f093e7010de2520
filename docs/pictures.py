"""The pictures of the documentation. The build draws them, and a test runs every function."""

import io
import re
import runpy
import warnings
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import colonnade as co

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
OBSERVED, FILLED, TRUE = "tab:blue", "tab:orange", "0.3"


def panels(n_columns, width=9.0, height=3.0, **options):
    return plt.subplots(1, n_columns, figsize=(width, height), layout="constrained", **options)


def smooth_table(rng, n_rows=60, n_columns=80, rank=3, noise=0.1):
    """A table whose columns are smooth curves, so that the eye can follow what is filled."""
    x = np.linspace(0, 1, n_rows)[:, None]
    patterns = np.hstack([np.cos(np.pi * k * x) / k for k in range(1, rank + 1)])
    clean = patterns @ rng.standard_normal((rank, n_columns))
    return clean, clean + noise * rng.standard_normal(clean.shape)


def hidden_part(X, share, seed=0):
    hidden = np.random.default_rng(seed).random(X.shape) < share
    return np.where(hidden, np.nan, X), hidden


def before_after():
    """A table with gaps, the filled table, and how sure its entries are."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 80)
    clean = sum(np.outer(np.cos(np.pi * (k * np.linspace(0, 1, 60) + k)), np.sin(5 * k * x + k)) for k in (1, 2, 3))
    data = clean + 0.1 * rng.standard_normal(clean.shape)
    table = np.where(rng.random(data.shape) < 0.2, data, np.nan)
    table[18:36, 48:68] = np.nan
    completion = co.complete(table)
    low, high = completion.interval(*np.indices(table.shape))
    figure, axes = panels(3, height=2.9, sharey=True)
    limits = {"vmin": -2.5, "vmax": 2.5, "cmap": "RdBu_r", "aspect": "auto", "interpolation": "nearest"}
    axes[0].set_facecolor("0.88")
    axes[0].imshow(table, **limits)
    figure.colorbar(axes[1].imshow(completion.to_dense(), **limits), ax=axes[1], shrink=0.9)
    width = axes[2].imshow(high - low, cmap="viridis", aspect="auto", interpolation="nearest")
    figure.colorbar(width, ax=axes[2], shrink=0.9)
    for ax, title in zip(axes, ("20 % of the entries", "filled", "width of the 90 % interval")):
        ax.set_title(title)
        ax.set_xlabel("column")
    axes[0].set_ylabel("row")
    return figure


def intervals():
    """Hidden cells of the wine table, with their predictions and intervals."""
    X = load_wine().data
    table, hidden = hidden_part(X, 0.2)
    completion = co.complete(table)
    names = load_wine().feature_names
    figure, axes = panels(2, height=3.2)
    for ax, name in zip(axes, ("flavanoids", "magnesium")):
        column = names.index(name)
        rows = np.flatnonzero(hidden[:, column])
        rows = rows[np.argsort(completion.entries(rows, column))]
        low, high = completion.interval(rows, column)
        places = np.arange(rows.size)
        ax.vlines(places, low, high, color=FILLED, alpha=0.5, lw=4, label="90 % interval")
        ax.plot(places, completion.entries(rows, column), "_", color=FILLED, mew=2, label="filled value")
        ax.plot(places, X[rows, column], "o", ms=3, color=TRUE, label="true value")
        ax.set(title=f"{name}, {rows.size} hidden cells", xlabel="wine, by filled value", xticks=[])
    axes[0].legend(fontsize="small")
    return figure


@cache
def _coverage():
    """For three tables that scikit-learn ships: levels, coverage, and coverage by the width of the interval."""
    levels, found = np.array([0.5, 0.7, 0.8, 0.9, 0.95]), {}
    for name, load in (("wine", load_wine), ("diabetes", load_diabetes), ("breast cancer", load_breast_cancer)):
        X = load().data
        table, hidden = hidden_part(X, 0.2)
        completion = co.complete(table)
        rows, columns = np.nonzero(hidden)

        def held(level, at=completion, X=X, rows=rows, columns=columns):
            low, high = at.interval(rows, columns, level=level)
            return (low <= X[rows, columns]) & (X[rows, columns] <= high), (high - low) / X.std(axis=0)[columns]

        shares = [held(level)[0].mean() for level in levels]
        holds, width = held(0.9)
        fifths = np.array_split(np.argsort(width), 5)
        found[name] = shares, [holds[part].mean() for part in fifths]
    return levels, found


def calibration():
    """How many hidden cells lie in their intervals, overall and by the width of the interval."""
    levels, found = _coverage()
    figure, axes = panels(2, height=3.2)
    axes[0].plot([45, 100], [45, 100], color="0.7", lw=1)
    axes[1].axhline(90, color="0.7", lw=1)
    for name, (shares, fifths) in found.items():
        axes[0].plot(100 * levels, 100 * np.array(shares), "o-", label=name)
        axes[1].plot(range(1, 6), 100 * np.array(fifths), "o-", label=name)
    axes[0].set(xlabel="level asked, %", ylabel="hidden cells inside, %", title="all cells")
    axes[1].set(xlabel="fifth of the cells, by width of the interval", title="90 % intervals", ylim=(60, 102))
    axes[1].set_xticks(range(1, 6), ["narrowest", "2", "3", "4", "widest"])
    axes[0].legend(fontsize="small")
    return figure


def method():
    """The table as a level, plus patterns times coefficients."""
    rng = np.random.default_rng(1)
    _, data = smooth_table(rng, 40, 60, rank=2, noise=0.15)
    data = data + np.sin(np.linspace(0, 9, 40))[:, None]
    table = np.where(rng.random(data.shape) < 0.4, data, np.nan)
    completion = co.complete(table, orientation="columns")
    level = np.zeros(40) if completion.center is None else completion.center
    U, sizes, Z = np.linalg.svd(completion.basis @ completion.coefficients, full_matrices=False)
    figure, axes = panels(5, height=2.7, width_ratios=[6, 0.7, 1.4, 6, 6])
    parts = {
        "table": table,
        "level": level[:, None],
        "patterns": 6 * U[:, :2],
        "coefficients": Z[:2] * sizes[:2, None] / 6,
        "filled table": completion.to_dense(),
    }
    for ax, (title, part) in zip(axes, parts.items()):
        ax.imshow(part, vmin=-2.2, vmax=2.2, cmap="RdBu_r", aspect="auto", interpolation="nearest")
        ax.set_title(title, fontsize="medium")
        ax.set(xticks=[], yticks=[])
    axes[0].set_facecolor("0.88")
    axes[3].set_box_aspect(2 * 1.4 / 12 / 0.7)
    for ax, sign in zip(axes[:4], "≈+×→"):
        ax.annotate(sign, (1, 0.5), (4, 0), "axes fraction", "offset points", fontsize=14, va="center")
    figure.get_layout_engine().set(wspace=0.12)
    return figure


def one_column():
    """The same new column, filled from 2, 5 and 15 entries."""
    rng = np.random.default_rng(5)
    clean, data = smooth_table(rng, 60, 60, rank=4)
    known = np.where(rng.random(data.shape) < 0.5, data, np.nan)
    model = co.complete(known[:, :-1])
    order = rng.permutation(60)
    x = np.arange(60)
    figure, axes = panels(3, sharey=True)
    for ax, k in zip(axes, (2, 5, 15)):
        new = np.full((60, 1), np.nan)
        new[order[:k], 0] = data[order[:k], -1]
        extended = model.extend(new)
        low, high = extended.interval(x, 59)
        ax.fill_between(x, low, high, color=FILLED, alpha=0.35, lw=0, label="90 % interval")
        ax.plot(x, clean[:, -1], color=TRUE, lw=1, label="truth")
        ax.plot(order[:k], data[order[:k], -1], "o", ms=4, color=OBSERVED, label="known entries")
        ax.set(title=f"{k} entries known", xlabel="row")
    axes[0].legend(fontsize="small")
    return figure


def tables_that_fail(rng):
    """One table that suits the model and three that do not: name, true values, and which of them are known."""
    _, data = smooth_table(rng, 60, 60, rank=3, noise=0.1)
    seen = rng.random(data.shape) < 0.5
    yield "patterns in common", data, seen
    yield "no patterns in common", rng.standard_normal(data.shape), seen
    x, y = rng.uniform(0, 6, (60, 1)), rng.uniform(0, 6, 60)
    yield "not a sum of patterns", np.sin(3 * x * y), seen
    yield "large values go missing", data, seen & (data < 0.5)


def failures():
    """Filled against true values for a table that suits the model and for three that do not."""
    figure, axes = panels(4, height=2.9)
    for ax, (name, data, seen) in zip(axes, tables_that_fail(np.random.default_rng(0))):
        with warnings.catch_warnings(action="ignore"):
            completion = co.complete(np.where(seen, data, np.nan))
        truth, filled = data[~seen], completion.to_dense()[~seen]
        error = np.sqrt(np.nanmean((truth - filled) ** 2)) / data.std()
        ax.plot(truth, filled, ".", ms=2, color=FILLED, alpha=0.6)
        edge = np.abs(data).max()
        ax.plot([-edge, edge], [-edge, edge], color="0.6", lw=1)
        ax.set(xlim=(-edge, edge), ylim=(-edge, edge), xlabel="true value")
        ax.set_title(f"{name}\nerror {error:.0%} of the spread", fontsize="small")
    axes[0].set_ylabel("filled value")
    return figure


def choose_rows():
    """The error of new columns from chosen and from random rows."""
    rng = np.random.default_rng(0)
    _, recorded = smooth_table(rng, 200, 80, rank=8, noise=0.02)
    patterns, sizes = np.linalg.svd(recorded, full_matrices=False)[:2]
    new = patterns[:, :8] @ (sizes[:8, None] / 9 * rng.standard_normal((8, 200)))
    space = co.fit_column_space(recorded, rank=8)
    counts = np.array([9, 12, 16, 24, 32, 48])

    def error(rows):
        z = np.linalg.lstsq(space.basis[rows], new[rows] + 0.02 * rng.standard_normal((rows.size, 200)), rcond=None)[0]
        return np.linalg.norm(space.basis @ z - new) / np.linalg.norm(new)

    figure, ax = panels(1, width=6, height=3)
    random = [[error(rng.choice(200, k, replace=False)) for _ in range(30)] for k in counts]
    ax.loglog(counts, np.median(random, axis=1), "o-", color=OBSERVED, label="random rows, median of 30 draws")
    ax.loglog(counts, [error(co.select_rows(space, int(k))) for k in counts], "o-", color=FILLED, label="select_rows")
    ax.set_xticks(counts, counts)
    ax.minorticks_off()
    ax.set(xlabel="rows measured, of 200", ylabel="relative error", title="New columns from a few rows, 8 patterns")
    ax.legend(fontsize="small")
    return figure


def sensors():
    """A field, the places of its sensors, and what is filled in from them; the data of `examples/sparse_sensors.py`."""
    example = runpy.run_path(str(EXAMPLES / "sparse_sensors.py"))
    rng = np.random.default_rng(0)
    truth = example["draw_field"](rng, 81)
    noise = example["NOISE"] * rng.standard_normal(truth.shape)
    recorded = truth[:, :80] + noise[:, :80]
    places = co.select_rows(co.fit_column_space(recorded, rank=10), example["N_SENSORS"])
    known = np.full((truth.shape[0], 1), np.nan)
    known[places, 0] = (truth + noise)[places, 80]
    completion = co.complete(np.hstack([recorded, known]))
    low, high = completion.interval(np.arange(truth.shape[0]), 80)
    shape = example["SHAPE"]
    figure, axes = panels(3, height=2.4, sharey=True)
    limits = {"vmin": -2.5, "vmax": 2.5, "cmap": "RdBu_r", "origin": "lower"}
    axes[0].imshow(truth[:, 80].reshape(shape).T, **limits)
    axes[0].plot(*np.divmod(places, shape[1]), "k^", ms=5)
    axes[1].imshow(completion.columns(80).reshape(shape).T, **limits)
    width = axes[2].imshow((high - low).reshape(shape).T, cmap="viridis", origin="lower")
    figure.colorbar(width, ax=axes[2], shrink=0.8)
    for ax, title in zip(axes, ("true field and 16 sensors", "filled field", "width of the 90 % interval")):
        ax.set(title=title, xticks=[], yticks=[])
    return figure


def lemma():
    """The number of Lemma 2 and the error of a column against the entries that it has."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 300)) + 0.05 * rng.standard_normal((300, 300))
    counts = rng.integers(9, 150, 300)
    counts[:60] = 300
    seen = rng.random(M.shape).argsort(axis=0).argsort(axis=0) < counts
    completion = co.complete(np.where(seen, M, np.nan), rank=8, center=False, shrinkage=0, refine=0)
    table = completion.certificates()[60:]
    off = np.where(seen, np.nan, completion.to_dense() - M)[:, 60:]
    figure, axes = panels(2)
    axes[0].plot(table.n_observed, table.smallest_eigenvalue, ".", color=OBSERVED)
    axes[0].axhline(0.5, color="0.6", lw=1)
    axes[0].set(xlabel="entries known of a column", title="certificate: smallest eigenvalue", ylim=(0, 1))
    axes[1].semilogy(table.smallest_eigenvalue, np.sqrt(np.nanmean(off**2, axis=0)), ".", color=FILLED)
    axes[1].axhline(0.05, color="0.6", lw=1)
    axes[1].set(xlabel="smallest eigenvalue", title="error of the filled entries; the line is the noise")
    return figure


def real_data():
    """The table "On real data" of the comparison, as errors over that of `complete`."""
    text = (DOCS / "comparison.md").read_text().split("## Accuracy on real data")[1]
    lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    table = [line for line in lines if re.fullmatch(r"\.\d+", line[-1])]
    errors = np.array([[float(cell) for cell in line[2:]] for line in table])
    figure, ax = panels(1, height=3.6)
    for j, name in enumerate(lines[0][2:-1]):
        ax.semilogx(errors[:, j] / errors[:, -1], np.arange(len(table)), "o", label=name, alpha=0.8)
    ax.axvline(1, color=FILLED, lw=2, label="complete")
    ax.set_yticks(range(len(table)), [line[0] for line in table])
    ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    ax.invert_yaxis()
    ax.set(xlabel="error over the error of complete, logarithmic")
    ax.legend(fontsize="small", ncols=2)
    return figure


def sizes():
    """The measured times of the page "How big can my data be", from its table."""
    text = (DOCS / "how_big.md").read_text().split("## Measured times")[1]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    runs = [row for row in cells if re.fullmatch(r"[\d.]+ million", row[1])]
    seconds = [float(row[2].split()[0]) for row in runs]
    figure, ax = panels(1, height=2.8)
    bars = ax.barh([f"{row[0]}, {row[1]} entries" for row in runs], seconds, color=OBSERVED)
    ax.bar_label(bars, [row[2] + (f", {row[3]}" if row[3] else "") for row in runs], padding=3, fontsize="small")
    ax.set(xlabel="processor seconds", xlim=(0, 1.3 * max(seconds)))
    ax.invert_yaxis()
    ax.tick_params(axis="y", labelsize="small")
    return figure


PICTURES = {
    function.__name__: function
    for function in (
        before_after,
        intervals,
        calibration,
        method,
        one_column,
        failures,
        choose_rows,
        sensors,
        lemma,
        real_data,
        sizes,
    )
}


@cache
def svg(name: str) -> bytes:
    """A picture by its name, with the same bytes in every build."""
    with matplotlib.rc_context({"svg.hashsalt": "colonnade", "axes.spines.top": False, "axes.spines.right": False}):
        figure = PICTURES[name]()
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        plt.close(figure)
    return file.getvalue()
