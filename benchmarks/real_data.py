"""Real matrices and what is hidden of them: .npz files with a matrix X, a column for each object.

Random split: d of the complete columns are kept in full, s random entries of up to 250 others, and the rest is hidden.
Other splits are harder or nearer to life: the first years in full and later ones in part, some stations in full and
others in part, and a matrix with gaps of its own just as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIZES = {  # d and s of the sets whose reference errors are known
    "oboe_err": (100, 20),
    "nirsoil": (100, 20),
    "hangzhou": (200, 10),
    "tas_E1": (40, 20),
    "coffee_ir": (20, 10),
    "jester": (500, 20),
}
IN_TIME = ("tas_E1",)  # sets whose columns follow each other in time
_MOST_PARTIAL = 250
_HIDDEN_SHARE = 0.1  # of the observed entries, where a set has gaps of its own


@dataclass(frozen=True)
class Problem:
    """A matrix with gaps and the truth behind those that are asked for.

    Attributes
    ----------
    name : str
    known : array of shape (m, n), NaN where unknown
    truth : array of shape (m, n), NaN where nobody knows
    hidden : bool array of shape (m, n)
        The entries that are asked for.
    """

    name: str
    known: np.ndarray
    truth: np.ndarray
    hidden: np.ndarray

    def error(self, filled) -> float:
        """Frobenius norm of the error over the hidden entries, relative to that of the truth there."""
        truth = self.truth[self.hidden].astype(np.float64)
        return float(np.linalg.norm(filled[self.hidden] - truth) / np.linalg.norm(truth))


def read_sets(folder, names=None) -> dict:
    """Matrix and names of the columns (or None) of every file, or of those named."""
    files = {path.stem: path for path in sorted(Path(folder).glob("*.npz"))}
    missing = [name for name in names or () if name not in files]
    if missing or not files:
        raise SystemExit(f"no {', '.join(missing) or 'npz file'} in {folder}; there are: {', '.join(files) or 'none'}")
    sets = {}
    for name in names or files:
        with np.load(files[name], allow_pickle=False) as arrays:
            if "X" in arrays:
                sets[name] = arrays["X"], arrays.get("cols")
    return sets


def sizes_of(name: str, X) -> tuple[int, int]:
    """d and s: as listed, or about a quarter of the columns and a tenth of the rows within bounds."""
    if name in SIZES:
        return SIZES[name]
    m, n_complete = X.shape[0], int((~np.isnan(X).any(axis=0)).sum())
    return int(np.clip(n_complete // 4, 1, 200)), int(np.clip(m // 10, 5, 20))


def problems(name: str, X, labels, seed: int) -> Iterator[Problem]:
    """The splits of a set, drawn with this seed."""
    complete = np.flatnonzero(~np.isnan(X).any(axis=0))
    d, s = sizes_of(name, X)
    rng = np.random.default_rng(seed)
    order = rng.permutation(complete)
    yield split(name, X, order[:d], order[d:], s, rng)
    if name in IN_TIME:
        yield split(f"{name} by time", X, complete[:d], rng.permutation(complete[d:]), s, rng)
    stations = groups_of(labels)
    if stations is not None:
        of_full = _stations_for(rng, stations[order], d)
        chosen = np.isin(stations[order], of_full)
        yield split(f"{name} by {_word(labels)}", X, order[chosen][:d], order[~chosen], s, rng)
    if complete.size < X.shape[1]:
        yield as_it_is(f"{name} as it is", X, rng)


def split(name: str, X, full, others, s: int, rng) -> Problem:
    """Some columns in full and s entries of each of up to 250 others."""
    others = others[:_MOST_PARTIAL]
    truth = X[:, np.concatenate([full, others])]
    hidden = np.zeros(truth.shape, bool)
    for j in range(full.size, truth.shape[1]):
        hidden[rng.permutation(truth.shape[0])[s:], j] = True
    return Problem(name, np.where(hidden, np.nan, truth).astype(X.dtype), truth, hidden)


def as_it_is(name: str, X, rng) -> Problem:
    """All columns with the gaps they have; a tenth of the observed entries of those that have some is hidden."""
    gappy = np.isnan(X).any(axis=0)
    hidden = ~np.isnan(X) & gappy & (rng.random(X.shape) < _HIDDEN_SHARE)
    return Problem(name, np.where(hidden, np.nan, X).astype(X.dtype), X, hidden)


def groups_of(labels):
    """What the columns' names have before their first "_", if several share it: station3_day7 and station3_day8."""
    if labels is None or not all("_" in str(label) for label in labels):
        return None
    groups = np.array([str(label).partition("_")[0] for label in labels])
    return groups if np.unique(groups).size < groups.size else None


def _word(labels) -> str:
    return str(labels[0]).partition("_")[0].rstrip("0123456789") or "group"


def _stations_for(rng, stations, d: int):
    """Random stations that together have at least d columns."""
    names, counts = np.unique(stations, return_counts=True)
    order = rng.permutation(names.size)
    return names[order[: int(np.searchsorted(np.cumsum(counts[order]), d)) + 1]]
