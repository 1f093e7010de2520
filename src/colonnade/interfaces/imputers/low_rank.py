"""The scikit-learn imputer for any table: gaps anywhere, features in units of their own.

A sample x with level c, unit s and loadings u of each feature is  x = c + s * (u'z + noise),  z ~ N(0, I). See
`model.factor_model`, whose rows are the features here and whose columns are the samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._support.arguments import as_choice, as_generator
from ...completion import Completion, complete
from ...data.observations import Observations
from ...model.directions import fix_signs
from ...model.factor_model import FactorModel
from ...model.learned import Learned, solve_new_columns
from ...model.leverage import leave_out, whole_and_noise
from ...model.prediction import keep_in_bounds
from ...uncertainty.draws import LEVEL, NORMAL, square_roots
from ...uncertainty.held_out import no_scores
from ...uncertainty.openness import open_columns
from ...uncertainty.parts import Parts
from ...uncertainty.student import from_normal, together
from ...uncertainty.table_calibration import TableCalibration, calibrate_table
from .common import Imputer, without_infinite

_BLOCK_NUMBERS = 10_000_000  # Numbers in the covariances of the samples that are filled at a time: 80 MB.


class LowRankImputer(Imputer):
    """Fill a table with gaps anywhere, by a factor model that is learned from all its entries.

    No row or column needs to be complete, and features may have different units. Every sample is a linear
    combination of a few directions plus noise. Uncertainty of the directions, of the sample and of the noise is
    part of the intervals and of the draws. ``LowRankImputer().fit_transform(X)`` is
    ``colonnade.complete(X, method="factor model", orientation="rows").to_dense()``.

    Parameters
    ----------
    rank : int or "auto"
        The largest number of directions. Default: hidden entries choose it.
    bounds : (float, float), optional
        Keep predictions, draws and intervals of all features within them.
    random_state : None, int, numpy Generator or RandomState
        Which entries are hidden to choose settings, and the draws if `sample_posterior`. None hides the same entries
        every time and draws anew in every call. An int makes every call draw the same.
    sample_posterior : bool
        Fill gaps with a draw from the posterior predictive distribution. Default: fill with its mean.

    Attributes
    ----------
    components_ : array of shape (rank_, n_features_in_)
        Directions in which samples differ, in units of `scale_`: orthogonal, the largest first. A sample is about
        ``mean_ + scale_ * (z @ components_)`` where z has mean 0 and variance 1 in every direction.
    mean_ : array of shape (n_features_in_,)
        Level of each feature.
    scale_ : array of shape (n_features_in_,)
        Spread of each feature; 0 for a constant feature.
    rank_ : int
    noise_std_ : array of shape (n_features_in_,)
        Standard deviation of the noise of each feature, in the units of the data.
    choices_ : dict of str
        What was chosen, in words.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If the training data had names that are strings.

    Notes
    -----
    A feature without any entry in training stays NaN, and so do its attributes. scikit-learn's imputers drop such a
    feature or fill it with 0; here the columns that come out are the columns that went in, and no number is made up.
    Entries that new samples have in such a feature are kept, but tell nothing about other features.

    A sample without any entry is filled with `mean_`. Samples are filled one by one: none depends on the others given
    to `transform`. Only draws share something: the directions are drawn once per call, so that entries are
    correlated within samples and within features as the model says.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 8)) * 10.0 ** np.arange(8)
    >>> known = np.where(rng.random(X.shape) < 0.7, X, np.nan)
    >>> imputer = co.LowRankImputer().fit(known)
    >>> bool(np.allclose(imputer.transform(known), X, rtol=1e-6))
    True
    """

    def __init__(self, *, rank="auto", bounds=None, random_state=None, sample_posterior=False):
        self.rank = rank
        self.bounds = bounds
        self.random_state = random_state
        self.sample_posterior = sample_posterior

    def _ends(self, samples, level: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = samples.copy(), samples.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            for gaps in self._gaps(samples):
                factors, ends = gaps.factors_and_ends(self._calibration, level)
                spread, center = factors * gaps.deviations(self._calibration.parts), gaps.predictions()
                for target, end in zip((low, high), ends):
                    gaps.write(target, center + end * spread, self._bounds)
        return low, high

    def _deviations(self, samples) -> np.ndarray:
        """Calibrated deviations, without the bounds."""
        std = np.where(np.isnan(samples), np.nan, 0).astype(samples.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for gaps in self._gaps(samples):
                gaps.write(std, gaps.to_normal(self._calibration) * gaps.deviations(self._calibration.parts), None)
        return std

    def _learn(self, samples) -> Completion:
        as_choice("sample_posterior", self.sample_posterior, (True, False))
        asked = {"rank": self.rank, "bounds": self.bounds, "random_state": self.random_state}
        completion = complete(Observations.from_dense(samples), method="factor model", orientation="rows", **asked)
        learned = completion.learned
        assert learned is not None  # The factor model was asked for.
        self._bounds, self._is_seen = completion.bounds, ~np.isnan(samples).all(axis=0)
        # The training samples' own coefficients are not needed again: they are solved like new samples.
        no_columns = np.zeros((0, learned.model.rank + 1))
        model = replace(learned.model, Z=no_columns, column_covariance=np.zeros((0, 0)))
        self._learned = replace(learned, model=model, held_out=None)
        # Factors of the training samples are not needed again either: the known entries of a sample tell its factor.
        none, found = np.zeros(0), calibrate_table(learned, completion.observations)
        self._calibration = replace(found, row_factors=none, row_degrees=none, x=none, scores=no_scores())
        self._keep(model, completion.choices)
        return completion

    def _keep(self, f: FactorModel, choices: dict) -> None:
        """Attributes for the user: NaN in features without any entry."""
        seen = self._is_seen
        self.rank_ = f.rank
        self.mean_ = np.where(seen, f.shift + f.unit * f.U[:, -1], np.nan)
        self.scale_ = np.where(seen, f.unit, np.nan)
        self.noise_std_ = self.scale_ * np.sqrt(f.own_noise)
        self.components_ = np.full((f.rank, seen.size), np.nan)
        turn = np.linalg.svd(np.linalg.qr(f.U[seen, :-1], mode="r"), full_matrices=True)[2]
        self.components_[:, seen] = fix_signs(f.U[seen, :-1] @ turn.T).T
        self.choices_ = choices | {
            "method": "factor model learned from all entries",
            "orientation": "samples; each feature has its own unit and level",
        }

    def _training(self, completion) -> np.ndarray:
        if self.sample_posterior:
            return self._without_gaps(completion.observations.to_dense())
        return np.ascontiguousarray(completion.to_dense())

    def _without_gaps(self, samples) -> np.ndarray:
        """A copy of the samples with predictions, or draws, in their gaps."""
        filled, draw = samples.copy(), None
        if self.sample_posterior:
            draw = _Draw.of(self._learned, as_generator(self.random_state))
        with np.errstate(over="ignore", invalid="ignore"):
            for gaps in self._gaps(samples):
                values = gaps.predictions()
                if draw is not None:
                    values += gaps.to_normal(self._calibration) * draw.deviations(gaps, self._calibration.parts)
                gaps.write(filled, values, self._bounds)
        return without_infinite(filled)

    def _gaps(self, samples):
        """The samples that have gaps, solved some at a time."""
        r = self._learned.model.rank
        which = np.flatnonzero(np.isnan(samples).any(axis=1))
        step = max(1, _BLOCK_NUMBERS // (r * r + samples.shape[1]))
        for lo in range(0, which.size, step):
            yield _Gaps.of(self._learned, samples, which[lo : lo + step], self._is_seen)


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Gaps of some samples, and the model with these samples as its columns.

    Attributes
    ----------
    model : FactorModel
    which : int array of shape (k,)
        Where the samples stand among all.
    features, samples : int64 arrays of shape (n_gaps,)
        The places of the gaps; `samples` counts within `which`.
    known : Observations
        The samples as columns.
    """

    model: FactorModel
    which: np.ndarray
    features: np.ndarray
    samples: np.ndarray
    known: Observations

    @classmethod
    def of(cls, learned: Learned, samples, which, is_seen) -> _Gaps:
        part = samples[which]
        at, features = np.nonzero(np.isnan(part) & is_seen)
        part[:, ~is_seen] = np.nan  # Nothing is known of such a feature, so its entries tell nothing.
        known = Observations.from_dense(part.T)
        Z, covariance = solve_new_columns(learned, known)
        model = replace(learned.model, Z=Z, column_covariance=covariance)
        return cls(model, which, features.astype(np.int64), at.astype(np.int64), known)

    def predictions(self) -> np.ndarray:
        return self.model.predict(self.features, self.samples)

    def deviations(self, parts: Parts) -> np.ndarray:
        return parts.deviations(*whole_and_noise(self.model, self.features, self.samples))

    def factors_and_ends(self, calibration: TableCalibration, level: float) -> tuple[np.ndarray, list[np.ndarray]]:
        """Factors of predicted deviations, and the ends of intervals in these.

        The factors are those of the features, and of the samples by what is known. Samples are rows of the table that
        was calibrated, and columns of its model.
        """
        features, samples = self.known.rows.astype(np.int64), self.known.entry_columns.astype(np.int64)
        found = leave_out(self.model, features, samples, self.known.values.astype(np.float64))
        of_samples, degrees = calibration.factors_of_new_rows(samples, features, found, self.which.size)
        degrees = together(degrees[self.samples], calibration.column_degrees[self.features])
        ends = [from_normal(end, degrees) for end in calibration.ends(level)]
        given = of_samples[self.samples], open_columns(self.model)[self.samples], self.features
        return calibration.factors_at_new_rows(*given), ends

    def to_normal(self, calibration: TableCalibration) -> np.ndarray:
        """Factors of predicted deviations with which normal 90 % intervals are ours."""
        factors, (low, high) = self.factors_and_ends(calibration, LEVEL)
        return factors * (high - low) / (2 * NORMAL)

    def write(self, target, values, bounds) -> None:
        """Write values at the gaps of all samples."""
        values = values.astype(target.dtype)
        keep_in_bounds(bounds, values)
        target[self.which[self.samples], self.features] = values


@dataclass(frozen=True, eq=False)
class _Draw:
    """A draw of all loadings from their posterior; samples and noise are drawn when asked for.

    Attributes
    ----------
    U : array of shape (n_features, q)
        Drawn (u, c) of every feature.
    rng : numpy Generator
    """

    U: np.ndarray
    rng: np.random.Generator

    @classmethod
    def of(cls, learned: Learned, rng) -> _Draw:
        f = learned.model
        return cls(_drawn(f.U, f.row_covariance, rng), rng)

    def deviations(self, gaps: _Gaps, parts: Parts) -> np.ndarray:
        """Drawn fit + noise - fit, in the units of the data, before calibration."""
        f = gaps.model
        Z = f.Z.copy()
        Z[:, :-1] = _drawn(f.Z[:, :-1], f.column_covariance, self.rng)
        predicted = gaps.predictions()
        fitted = replace(f, U=self.U, Z=Z).predict(gaps.features, gaps.samples)
        noise = (f.unit * np.sqrt(f.own_noise))[gaps.features] * self.rng.standard_normal(gaps.features.size)
        return np.sqrt(parts.fit) * (fitted - predicted) + np.sqrt(parts.noise) * noise


def _drawn(means, packed, rng) -> np.ndarray:
    """A draw from N(means[k], covariance k) for every k, of the shape of the means."""
    result = means.copy()
    normal = rng.standard_normal(means.shape)
    step = max(1, _BLOCK_NUMBERS // max(1, means.shape[1] ** 2))
    for lo in range(0, len(means), step):
        part = slice(lo, lo + step)
        result[part] += np.einsum("kab,kb->ka", square_roots(packed[part], means.shape[1]), normal[part])
    return result
