"""The columns by which settings are judged: of each, entries are left out and predicted from its others.

They are partial columns. Where these are few, or a few of them are far worse predicted than the others, as it is with
latencies, they tell little. Then full columns are asked too, hidden in turn but for as many entries as partial columns
have, and predicted from the other full ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...data.observations import Observations
from ..column_space import ColumnSpace, fit_column_space, truncated, with_offset
from ..leaving_out import LEAST_SHARE, MANY_COLUMNS, Model
from .hidden_columns import DRAWS, Hidden, hidden_in_turn, some_of_the_full
from .losses import Asked, weights_of

_UNSURE = 0.1  # of the mean loss: a larger standard error tells little
_FEWEST_FULL, _MOST_FULL = 8, 1_000  # full columns of which some are hidden
_HIDDEN = 20, 200  # of these, at least and at most
_HIDDEN_ENTRIES = 4_000  # that are drawn of them at a time
_FOLDS = 5


class Jury:
    """Columns whose losses are compared.

    Attributes
    ----------
    partial : Asked
        Those that are partial.
    """

    def __init__(self, partial: Observations, hidden: list[Hidden] | None = None):
        hidden = hidden or []
        n_columns = partial.shape[1] + sum(some.seen.shape[1] // DRAWS for some in hidden)
        self.partial = Asked(partial, by_columns=n_columns >= MANY_COLUMNS)
        self._folds = [_Fold(some, self.partial.unit) for some in hidden]
        self._weights = None

    def with_full_columns(self, o: Observations, rng) -> Jury | None:
        """The jury to which full columns were added; None if there are too few of them."""
        _, A, weights = some_of_the_full(o, _MOST_FULL)
        partial = self.partial.observations
        if A.shape[1] < _FEWEST_FULL or A.shape[0] < 3 or partial.shape[1] + A.shape[1] < MANY_COLUMNS:
            return None
        most = int(np.clip(_HIDDEN_ENTRIES / np.median(partial.n_observed), *_HIDDEN))
        return Jury(partial, list(hidden_in_turn(A, weights, partial.n_observed, _FOLDS, most, rng)))

    def losses(self, spaces: list[ColumnSpace], noise, models: list[Model], offset: float) -> list:
        """Losses and surprises of every model and offset variance, shape (k, g) each, those of partial columns first.

        There is a model for each space, and the first space serves all of them; `offset` is what the spaces have of it
        already, as `with_offset` has it. Losses are weighed, wild ones count for nothing.
        """
        judged = self.partial.losses(spaces[0], noise, models)
        for fold in self._folds:
            found = [more for space, model in zip(spaces, models) for more in fold.losses(space, noise, model, offset)]
            judged = [tuple(map(np.concatenate, zip(*pair))) for pair in zip(judged, found)]
        if self._weights is None:
            self._weights = self._weights_by([losses for losses, _ in judged], spaces, models)
        return [(self.weighed(losses), surprises) for losses, surprises in judged]

    def _weights_by(self, judged: list[np.ndarray], spaces, models) -> np.ndarray:
        """By the least that any of the settings leaves of each loss; wild are columns that are so beside all spaces."""
        kinds = [(space, model.center) for space, model in zip(spaces, models) for _ in model.offset_variances]
        wild = [
            self.partial.is_wild(self.of_partial(losses), center, space.entry_variance or 1.0)
            for losses, (space, center) in zip(judged, kinds)
        ]
        least = np.min([losses.min(axis=1) for losses in judged], axis=0)
        ordinary = np.ones(least.size, bool)
        self.of_partial(ordinary)[:] = ~np.all(wild, axis=0)
        return weights_of(least, ordinary)

    @property
    def n_outstanding(self) -> int:
        """How many partial columns, or entries of theirs, are so much worse predicted that not all of it counts."""
        return int((self.of_partial(self._weights) < 1).sum())

    @property
    def is_ordinary(self) -> np.ndarray:
        """Which losses are not wild, shape (k,)."""
        return self._weights > 0

    def weighed(self, losses) -> np.ndarray:
        """Losses, or those of the partial columns, each times its weight; shape (k, g) or (k,)."""
        weights = self._weights[: losses.shape[0]].reshape(-1, *[1] * (losses.ndim - 1))
        return np.where(weights > 0, losses, 0.0) * weights

    def of_partial(self, losses) -> np.ndarray:
        """Those of the partial columns among all losses."""
        return losses[: losses.shape[0] - sum(fold.size for fold in self._folds)]


def is_unsure(losses) -> bool:
    """Whether the mean of some losses, shape (k,), is known too badly to compare it with others."""
    largest = float(losses.max(initial=0))
    if not 0 < largest < np.inf:
        return False
    shares = losses / largest  # whose squares are numbers
    return bool(shares.std() > _UNSURE * shares.mean() * np.sqrt(shares.size))


class _Fold:
    """Full columns that are hidden, and the spaces of the others."""

    def __init__(self, hidden: Hidden, unit: float):
        self._asked = Asked(hidden.seen, by_columns=True, unit=unit)
        self.size = hidden.seen.shape[1] // DRAWS

        @cache
        def space_with(center: bool, offset: float) -> ColumnSpace:
            return with_offset(fit_column_space(hidden.others, center=center), offset)

        self._space_with = space_with

    def losses(self, space: ColumnSpace, noise, model: Model, offset: float) -> list:
        """Of spaces like this one, and an offset beside it: the mean over the draws of each column."""
        own = truncated(self._space_with(space.center is not None, offset), space.rank)
        noise = np.maximum(noise, LEAST_SHARE * own.entry_variance)  # less is the same but takes far longer
        found = self._asked.losses(own, noise, [Model(own.center, model.offset_variances)])
        return [tuple(x.reshape(DRAWS, -1, x.shape[1]).mean(axis=0) for x in pair) for pair in found]
