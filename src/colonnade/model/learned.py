"""What was learned from a table: the factor model, how it was chosen, and its predictions of hidden entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.observations import Observations
from .factor_model import FactorModel
from .table import rescaled_table

_UNLIKE = 8.0  # Predicted deviations beyond which an observed entry is named an outlier, if noise has Student-t tails.


@dataclass(frozen=True, eq=False)
class HeldOutEntries:
    """Entries that the settings were chosen by, predicted by a model that has not seen them; arrays of shape (k,).

    Attributes
    ----------
    rows, columns : int64
    truth, predicted, deviations : float64
        In the units of the data; the deviations are predicted too.
    by_row, by_column : float
        Root mean square errors in units of the rows' and of the columns' spread, weighted for the gaps.
    like_gaps : bool
        Whether they were hidden together in the pattern of the gaps: see `gap_pattern`. The deviations are then those
        to be expected of the final fit, had it not seen them.
    """

    rows: np.ndarray
    columns: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    deviations: np.ndarray
    by_row: float
    by_column: float
    like_gaps: bool = False

    def joined(self, other: HeldOutEntries) -> HeldOutEntries:
        """These entries and others, which another fit of the same settings has not seen."""
        names = "rows", "columns", "truth", "predicted", "deviations"
        arrays = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in names]
        a, b = self.rows.size, other.rows.size
        squares = [(a * x**2 + b * y**2) / (a + b) for x, y in zip(self._errors, other._errors)]
        return HeldOutEntries(*arrays, *map(float, np.sqrt(squares)))

    @property
    def _errors(self) -> tuple[float, float]:
        return self.by_row, self.by_column

    @property
    def sizes(self) -> np.ndarray:
        """Of the errors."""
        return np.abs(self.truth - self.predicted)

    def scores(self) -> np.ndarray:
        """Sizes of the errors in predicted standard deviations, rising."""
        known = self.deviations > 0
        return np.sort(self.sizes[known] / self.deviations[known])


@dataclass(eq=False)
class Learned:
    """A factor model and how it was chosen.

    Attributes
    ----------
    model : FactorModel
        Of the table, or of its transpose if `is_turned`.
    is_turned : bool
        Whether the model's rows are the table's columns.
    held_out : HeldOutEntries or None
        Predictions of the entries that were hidden while the settings were chosen; None if none were hidden.
    is_exact : bool
        Whether the entries fit to rounding.
    choices : dict of str
        What was chosen, in words.
    """

    model: FactorModel
    is_turned: bool
    held_out: HeldOutEntries | None
    is_exact: bool
    choices: dict

    def at(self, rows, columns) -> tuple[np.ndarray, np.ndarray]:
        """Places of the table as places of the model."""
        return (columns, rows) if self.is_turned else (rows, columns)

    def predict(self, rows, columns) -> np.ndarray:
        return self.model.predict(*self.at(rows, columns))

    def deviations(self, rows, columns, *, with_noise: bool = True) -> np.ndarray:
        return self.model.deviations(*self.at(rows, columns), with_noise=with_noise)


def outliers(learned: Learned, o: Observations) -> np.ndarray:
    """Where in ``o.values`` entries stand that the model does not explain and gives hardly any weight."""
    if learned.is_exact or not np.isfinite(learned.model.settings.degrees):
        return np.zeros(0, np.int64)
    rows, columns = o.rows.astype(np.int64), o.entry_columns.astype(np.int64)
    errors = np.abs(o.values - learned.predict(rows, columns))
    fit, whole = (learned.deviations(rows, columns, with_noise=noisy) for noisy in (False, True))
    weights = 1.0 if o.weights is None else o.weights  # The noise is that of an entry of weight 1.
    return np.flatnonzero(errors > _UNLIKE * np.sqrt(fit**2 + (whole**2 - fit**2) / weights))


def solve_new_columns(learned: Learned, o: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and packed covariances of new columns of the model's rows."""
    return learned.model.solve(rescaled_table(o, learned.model.shift, learned.model.unit))
