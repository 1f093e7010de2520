"""Standard errors of Tall-Project: how far its fitted entries may be from the factor model's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._support.arguments import as_indices
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ._low_rank import Entries


@one_blas_thread()
def tall_project_errors(completion: Completion, rows, columns, *, measured_anew: bool = False) -> np.ndarray:
    """Heteroscedasticity-robust standard errors of the fitted entries a_i + f_t' l_i at (rows[k], columns[k]).

    An entry's factors f_t are known from the columns seen in row t, its intercept and loadings from the rows seen in
    column i; the two parts of the variance are, with residuals e,

        l_i' S_o^-1 [sum over full columns k of l_k l_k' e_tk^2] S_o^-1 l_i,        S_o = sum of l_k l_k'
        x_t' (X_O'X_O)^-1 [sum over O of x_s x_s' e_si^2] (X_O'X_O)^-1 x_t,          x_t = (1, f_t)

    that is V0 / N_full + W0 / T_i of the paper. If the factors were estimated again from the completed matrix, the
    first part counts the partial columns that are seen in row t, too: with S over all columns and A_t over those not
    seen, full columns enter by S^-1 (I + A_t S_o^-1) l_k and seen ones by S^-1 l_k, which is the same where none is
    seen. Residuals are divided by one less their leverage (HC3), because the fit has made them smaller.

    Parameters
    ----------
    completion : Completion
        By `tall_project`.
    rows, columns : integer arrays, broadcast against each other
    measured_anew : bool
        Add the variance of the column's noise: the error of a new measurement rather than of the low-rank part.

    Returns
    -------
    array of the broadcast shape
        NaN where the column is not filled or has no entry to spare, and everywhere if there are no more full columns
        than factors. Observed entries have the error of their fitted value.
    """
    if not isinstance(completion, Completion) or completion.choices.get("method") != "Tall-Project":
        raise ValueError("tall_project_errors needs a completion made by tall_project")
    rows, columns = as_indices("rows", rows, completion.shape[0]), as_indices("columns", columns, completion.shape[1])
    rows, columns = np.broadcast_arrays(rows, columns)
    shape, rows, columns = rows.shape, rows.ravel(), columns.ravel()
    fit = _Fit(completion)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = fit.of_factors(rows, columns) + fit.of_loadings(rows, columns)
        if measured_anew:
            variances += fit.noise[columns]
    variances[~fit.known[columns]] = np.nan
    return (np.sqrt(variances) * fit.unit).reshape(shape)


class _Fit:
    """Factors X = (1, F) (m, k), loadings L (n, k), and squared residuals with their leverages, in some unit."""

    def __init__(self, completion: Completion):
        o = completion.observations
        self.o, self.unit, self.again = o, unit_of(o.values), not completion.by_columns
        self.X = completion.basis.astype(np.float64)
        k, n_seen = self.X.shape[1], o.n_observed
        self.L = np.nan_to_num(completion.coefficients.T / self.unit)
        self.known = (n_seen > k) & ~np.isnan(completion.coefficients).any(axis=0) & (o.full_columns.size > k - 1)
        e = Entries(o, self.unit)
        # Full columns were solved with these weights.
        e.weights[np.repeat(np.isin(np.arange(n_seen.size), o.full_columns), n_seen)] = 1
        outer = np.einsum("ta,tb->tab", self.X, self.X).reshape(-1, k * k)
        grams = (e.matrix(e.weights).T @ outer).reshape(-1, k, k)
        grams[~self.known] = np.eye(k)
        self.inverses = np.linalg.inv(grams)
        leverage = e.weights * e.fitted(outer, self.inverses.reshape(-1, k * k))
        leverage += np.repeat(self._leverage_of_columns(), n_seen)
        residuals = e.values - e.fitted(self.X, self.L)
        self.weights, self.squares = e.weights, (residuals / np.maximum(1 - leverage, 0.1)) ** 2
        total = np.bincount(np.repeat(np.arange(n_seen.size), n_seen), e.weights * residuals**2, n_seen.size)
        self.noise = total / np.maximum(n_seen - k, 1)

    def _leverage_of_columns(self) -> np.ndarray:
        """Leverage of every column in the estimate of its own factors, shape (n,)."""
        F, full = self.L[:, 1:], self.o.full_columns
        among_all = np.einsum("ia,ab,ib->i", F, np.linalg.pinv(F.T @ F), F) if self.again else np.zeros(F.shape[0])
        among_all[full] = np.einsum("ia,ab,ib->i", F[full], np.linalg.pinv(F[full].T @ F[full]), F[full])
        return among_all

    def of_factors(self, rows, columns) -> np.ndarray:
        """l_i' Var(f_t) l_i."""
        L, full = self.L[:, 1:], np.zeros(self.L.shape[0], bool)
        full[self.o.full_columns] = True
        S_o = np.linalg.pinv(L[full].T @ L[full])
        S = np.linalg.pinv(L.T @ L)
        across = replace(self.o, values=self.squares, weights=None).transposed()
        result = np.empty(rows.size)
        for t, at in _groups(rows):
            here = slice(across.indptr[t], across.indptr[t + 1])
            seen, squares = across.rows[here], across.values[here]
            own = L[seen]
            if self.again:
                unseen = L.T @ L - own.T @ own
                parts = np.where(full[seen][:, None], own @ (np.eye(S.shape[0]) + S_o @ unseen) @ S, own @ S)
            else:
                parts = np.where(full[seen][:, None], own @ S_o, 0.0)
            # Summed first, because l' meat l needs no table of pairs of columns.
            meat = (parts * squares[:, None]).T @ parts
            asked = L[columns[at]]
            result[at] = np.einsum("ia,ia->i", asked @ meat, asked).clip(0)
        return result

    def of_loadings(self, rows, columns) -> np.ndarray:
        """x_t' Var(b_i) x_t."""
        result = np.empty(rows.size)
        for i, at in _groups(columns):
            here = slice(self.o.indptr[i], self.o.indptr[i + 1])
            B = self.X[self.o.rows[here]] * self.weights[here, None]
            result[at] = ((self.X[rows[at]] @ self.inverses[i] @ B.T) ** 2) @ self.squares[here]
        return result


def _groups(keys):
    """Every key with the places where it stands."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    for at in np.split(order, starts[1:]) if keys.size else ():
        yield keys[at[0]], at
