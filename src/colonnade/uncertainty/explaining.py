"""The reason for a value: the level of its row and the known entries of its column, each with its weight.

The loadings are taken as given, as they were learned. Of an observed entry the prediction without it is explained.
A factor model that was learned with rows and columns exchanged predicts from the known entries of the table's row.
"""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_places, as_real
from ..data.observations import Observations
from ..model.linear_form import LinearForm, form_in_model, form_in_space
from ..model.solve import Status, solve_columns
from .column_verdict import remedy
from .explanation import Explanation, Similar

_MOST_JUDGED = 20_000  # Columns up to which the verdict on a column is looked up: it is found for all of them at once.
_N_SIMILAR = 5  # Similar columns that an explanation names.
_NOTHING = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)


def explain_entry(completion, row, column, level: float) -> Explanation:
    """Why an entry has its value; see `Completion.explain`."""
    if completion.learned is None and not completion.by_columns:
        method = completion.choices.get("method", "this method")
        raise ValueError(
            f"{method} fits all columns together, so that no sum explains its values;"
            " complete(completion.observations) has reasons"
        )
    level = as_real("level", level, 0, 1, "()")
    i, j = _place(completion, "row", row), _place(completion, "column", column)
    by_row = completion.learned is not None and completion.learned.is_turned
    reason = _Reason(completion, i, j)
    value = float(completion.entries(i, j))
    is_observed = bool(reason.at >= 0)
    form, others, values, message = reason.in_model() if completion.learned else reason.in_space()
    order = np.lexsort((others, -np.abs(form.contributions)))
    names = completion.column_names if by_row else completion.row_names
    verdict, help_ = _verdict(completion, j)
    return Explanation(
        row=_label(completion.row_names, i),
        column=_label(completion.column_names, j),
        value=value,
        is_observed=is_observed,
        prediction=form.prediction,
        level=form.level,
        offset=form.offset,
        through="row" if by_row else "column",
        names=others[order] if names is None else names[others[order]],
        values=values[order].astype(np.float64),
        weights=form.weights[order],
        contributions=form.contributions[order],
        leverage=form.leverage,
        similar=_similar_rows(completion, i, j) if by_row else _similar_columns(completion, i, j),
        interval=_interval(completion, i, j, level, value, is_observed),
        interval_level=level,
        verdict=verdict,
        remedy=help_,
        message=message,
        bounds=completion.bounds,
        source=reason.part.observations,
    )


def _place(completion, what: str, asked) -> int:
    """The number of the one row or column that is asked; a tuple is a label of several levels."""
    names, length = (completion.row_names, completion.shape[0])
    if what == "column":
        names, length = completion.column_names, completion.shape[1]
    place = as_places(what, str(asked) if isinstance(asked, tuple) else asked, names, length)
    if place.ndim:
        raise ValueError(f"{what} must be one number or name; got {place.size:,} of them")
    return int(place)


def _label(names, k: int):
    return int(k) if names is None else names[k]


class _Reason:
    """An entry with what its column (or, in a turned model, its row) knows.

    Attributes
    ----------
    part : Solution
        That holds the column: the whole, or a block of it on the disk.
    n_learned_from : int
        How many columns there were when the model was learned.
    column : int
        Of the part.
    at : int
        Where the entry stands in the observations of the part; -1 if it is not observed.
    """

    def __init__(self, completion, i: int, j: int):
        solution = completion.solution
        ((_, here, self.part),) = solution.by_parts(np.array([j]))
        self.row, self.column = i, int(here[0])
        self.n_learned_from = n_learned_from(completion)
        self.status = Status(self.part.status[self.column])
        self.at = int(self.part.observations.locate(np.array([i]), np.array([self.column]))[0])

    def in_space(self) -> tuple[LinearForm, np.ndarray, np.ndarray, str]:
        """The sum in a column space, the rows and values of its entries, and what is to be said of the column."""
        part = self.part
        o = part.used.take([self.column])
        place = int(o.locate(np.array([self.row]), np.zeros(1, np.int64))[0])
        own, status = 1.0, self.status
        if place >= 0:  # Predicted without itself.
            own = 1.0 if o.weights is None or o.full_columns.size else float(o.weights[place])
            o = o.without([place])
            status = Status(solve_columns(part.space, o, penalty=part.penalty)[1][0])
        message = status.message
        if self.at >= 0 and place < 0:
            message = "the observed value is an outlier and had no part in the answer"
        if not status.is_filled:
            return _no_form(), *_NOTHING[:2], message
        weights = np.ones(o.rows.size) if o.weights is None or o.full_columns.size else o.weights
        form = form_in_space(part.space, part.penalty, self.row, o.rows, o.values, weights, own)
        return form, o.rows, o.values, message

    def in_model(self) -> tuple[LinearForm, np.ndarray, np.ndarray, str]:
        """The same in a factor model."""
        learned, message = self.part.learned, self.status.message
        if not self.status.is_filled:
            return _no_form(), *_NOTHING[:2], message
        if self.part.center is not None and np.isnan(self.part.center[self.row]):
            words = "the row has no known value and stays NaN; measure some values of it"
            return _no_form(), *_NOTHING[:2], words
        o, weights = self.part.observations, _weights_in_model(self.part.observations, self.n_learned_from)
        own = 1.0 if self.at < 0 else float(weights[self.at])
        at = self._entries_of_row() if learned.is_turned else np.arange(*o.indptr[self.column : self.column + 2])
        at = at[at != self.at]
        others = o.columns_of(at) if learned.is_turned else o.rows[at].astype(np.int64)
        asked = self.column if learned.is_turned else self.row
        form = form_in_model(learned.model, asked, others, o.values[at].astype(np.float64), weights[at], own)
        return form, others, o.values[at], message

    def _entries_of_row(self) -> np.ndarray:
        """Known entries of the row from which its coefficients were computed: none of columns that were added later."""
        o = self.part.observations
        at = np.flatnonzero(o.rows == self.row)
        return at[o.columns_of(at) < self.n_learned_from]


def n_learned_from(completion) -> int:
    """How many columns, the first ones, were there when the model was learned; `extend` appends others."""
    return int(completion.run.get("n_columns_learned_from", completion.shape[1]))


def _weights_in_model(o: Observations, n_learned_from: int) -> np.ndarray:
    """Weights of all entries in the units in which the factor model was learned, from so many columns."""
    if o.weights is None or o.weights.size == 0:
        return np.ones(o.values.size)
    return np.asarray(o.with_relative_weights(n_learned_from).weights, np.float64)


def _no_form() -> LinearForm:
    return LinearForm(np.nan, 0.0, np.zeros(0), np.zeros(0), np.nan)


def _interval(completion, i: int, j: int, level: float, value: float, is_observed: bool):
    """Low and high of a filled entry; None if it is observed or has no interval."""
    if is_observed or np.isnan(value) or not completion.has_variances:
        return None
    low, high = completion.interval(i, j, level)
    return float(low), float(high)


def _verdict(completion, j: int) -> tuple[str | None, str | None]:
    """The verdict on the column and what would help it; None for tables too large to judge all columns."""
    if completion.solution.is_on_disk or completion.shape[1] > _MOST_JUDGED:
        return None, None
    found = completion.certificates(as_frame=False)[j]
    n_gaps = completion.shape[0] - int(found.n_observed)
    return str(found.verdict), remedy(str(found.verdict), int(found.more_entries), n_gaps)


def _similar_rows(completion, i: int, j: int) -> list[Similar]:
    model, counts = completion.learned.model, np.bincount(completion.observations.rows, minlength=completion.shape[0])
    distances = _distances(model.Z[:, : model.rank], model.Z[i, : model.rank], counts > 0)
    nearest = _nearest(distances, i)
    return _similar(completion.row_names, nearest, distances, completion.entries(nearest, j))


def _similar_columns(completion, i: int, j: int) -> list[Similar]:
    if completion.learned is not None:
        model = completion.solution.model_of(np.arange(completion.shape[1]))[0].model
        distances = _distances(model.Z[:, : model.rank], model.Z[j, : model.rank], completion.n_observed > 0)
    else:
        distances = _distances_in_space(completion, j)
    nearest = _nearest(distances, j)
    return _similar(completion.column_names, nearest, distances, completion.entries(i, nearest))


def _similar(names, nearest, distances, values) -> list[Similar]:
    return [Similar(_label(names, k), float(distances[k]), float(v)) for k, v in zip(nearest, values) if np.isfinite(v)]


def _distances_in_space(completion, j: int) -> np.ndarray:
    """Distances of all columns from one, block after block where they are on the disk."""
    if not completion.has_variances or completion.rank == 0:
        return np.full(completion.shape[1], np.inf)
    scale = np.sqrt(completion.space.variances)
    scale = np.where(scale > 0, scale, np.inf)  # A direction without variance tells no two columns apart.
    Z = np.concatenate([part.coefficients.T.astype(np.float64) / scale for part in completion.solution.blocks()])
    return _distances(Z, Z[j], completion.n_observed > 0)


def _distances(Z, z, known) -> np.ndarray:
    """Euclidean distances of coefficients from z in prior deviations; infinite where nothing is known."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.sqrt(((Z - z) ** 2).sum(axis=1)) if z.size else np.full(len(Z), np.inf)
    return np.where(known & np.isfinite(found), found, np.inf)


def _nearest(distances, but: int) -> np.ndarray:
    """The nearest few others, the nearest first."""
    distances = distances.copy()
    distances[but] = np.inf
    few = np.argsort(distances, kind="stable")[:_N_SIMILAR]
    return few[np.isfinite(distances[few])]
