"""Stage 3d, the refinement: what the partial columns teach in their turn.

A sweep takes the coefficients z of all columns as they stand and learns the rest anew.

    The prior: mean and covariance of the z, with the uncertainty of each z added to its scatter; this is a step of the
    EM algorithm for columns drawn from a Gaussian within the span of the full columns.
    The rows, if asked for: the one equation turned round, with the z as the basis. Row i of U moves by delta,
        (Z_O Z_O' + t m I) delta = Z_O (x_i - c_i - u_i' Z)_O,
    t the noise variance and 1 / m the mean square of an entry of U, so that rows seen seldom stay where they were.

Whether sweeps help, and how many, is judged by entries of partial columns that are hidden from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..._support.arguments import as_generator, is_auto
from ..._support.threads import in_threads, one_blas_thread
from ...data.observations import Observations
from ..column_space import ColumnSpace, fix_signs
from ..leaving_out import column_losses, columns_alike, is_no_chance, least_noise, leave_one_out, size_of
from ..solve import Status, solve_columns
from .learn import Lesson, learn, penalty_of, with_mean
from .out_of_line import out_of_line
from .wild_entries import Screening

_MOST_ROUNDS = 3  # of learning without what is out of line
_GATHERED = 5, 0.2  # entries of a row, and share of those of partial columns, that are no typos if they are out of line
_MOST_SWEEPS = 3
_FOLDS = 3
_HIDDEN_SHARE = 0.2
_ASKED_ENTRIES = 10_000  # of columns of which entries are hidden
_TAUGHT_COLUMNS = 1_000, 10  # partial columns from which the prior is learned, and for each direction, at least
_UNSURE_COLUMNS = 100  # over which the uncertainty of the coefficients is averaged
_MANY_ENTRIES = 100_000  # of partial columns, from which on one fold tells enough
_LARGE_DATA = 2_000_000  # entries in all, of which three folds would be three copies
_FEW_HIDDEN = 0.03  # of the entries of partial columns, without which sweeps end where all would lead them
_CHEAP = 3e8  # multiplications of a sweep over rows that need no second thought
_FAIR = 2.0  # times the cost of the columns that a sweep over rows may cost beyond
_WILD = 100.0  # times the usual size of a column, from which on it teaches nothing
_PIECES = 8  # of the rows, for threads
_SMALL, _LARGE = 1e-70, 1e70  # numbers between which products of variances are numbers
_SURE = 1.0  # standard errors by which sweeps must beat none
_CLEAR = 2.0  # standard errors by which one kind of sweep must be worse than another to be given up
_WORTHWHILE = 1e-3  # of the mean square error: a smaller gain is none
_PROMISING = 2e-3  # likewise: for less no further sweep is tried


@dataclass(frozen=True)
class _Verdict:
    """What the hidden entries say of a number of sweeps.

    Attributes
    ----------
    by_rows : bool
    n_sweeps : int
    losses : array
        The mean square error of every asked column, or the square error of every hidden entry where they are few.
    typical : float
        The mean size of the errors.
    left : list of (ColumnSpace, Observations)
        Of every fold what the sweeps led to, and what they had seen of the asked columns.
    """

    by_rows: bool
    n_sweeps: int
    losses: np.ndarray
    typical: float
    left: list

    @property
    def loss(self) -> float:
        return float(self.losses.mean())

    def beats(self, other: _Verdict) -> bool:
        gain = other.losses - self.losses
        return gain.mean() > _WORTHWHILE * other.loss and (gain.size == 1 or is_no_chance(gain, _SURE))

    def optimism(self, noise: float) -> float:
        """By how much entries hidden from the sweeps are worse predicted than those left out after they were seen."""
        seen = np.mean([_seen_errors(space, noise, asked) for space, asked in self.left]) if self.left else 0.0
        return float(np.clip(self.typical / seen, 1.0, 10.0)) if seen > 0 else 1.0


@one_blas_thread()
def learn_and_refine(
    observations: Observations, screening: Screening, *, rank, center, shrinkage, refine, random_state
) -> tuple[Lesson, float]:
    """What `learn` and then `refine_lesson` make of the observations; what is out of line has no say in either.

    Parameters
    ----------
    observations : Observations
    screening : Screening
        Of the whole, with the columns numbered as those of the observations.
    rank, center, shrinkage, refine
        As of `complete`.
    random_state : None or numpy Generator
    """
    settings = {"rank": rank, "center": center, "shrinkage": shrinkage, "random_state": random_state}
    unlearned, likely = screening.unlearned(observations), observations
    tame = observations.without(unlearned)
    lesson = learn(observations, tame=tame, **settings)
    for _ in range(_MOST_ROUNDS):  # what is out of line may hide more of it
        before = likely.values.size
        found = _single(observations, out_of_line(lesson.space, observations, lesson.penalty, screening.code))
        likely = observations.without(found)
        if likely.values.size == before:
            break
        more = np.setdiff1d(unlearned, found)
        tame = observations.without(np.union1d(found, more)) if more.size else likely
        lesson = learn(likely, tame=tame, **settings)
    rng = as_generator(0) if random_state is None else random_state
    lesson, optimism = refine_lesson(tame if lesson.noise_variance else likely, lesson, refine, rng)
    return with_mean(lesson, tame), optimism


def _single(o: Observations, places) -> np.ndarray:
    """Without those that gather in rows: typos do not, but a direction that only the partial columns have does."""
    if places.size == 0:
        return places
    m, d = o.shape[0], o.full_columns.size
    found, seen = np.bincount(o.rows[places], minlength=m), np.bincount(o.rows, minlength=m) - d
    gathered = (found >= _GATHERED[0]) & (found > _GATHERED[1] * seen)
    return places[~gathered[o.rows[places]]]


def refine_lesson(observations: Observations, lesson: Lesson, n_sweeps, rng) -> tuple[Lesson, float]:
    """The lesson after some sweeps.

    Parameters
    ----------
    observations : Observations
    lesson : Lesson
        Learned from the full columns.
    n_sweeps : int or "auto"
        So many sweeps over rows and columns; "auto" lets hidden entries decide, also between sweeps with and without
        the rows.
    rng : numpy Generator
        For which entries are hidden.

    Returns
    -------
    lesson : Lesson
    optimism : float
        By how much errors of entries left out are larger than they seem after the sweeps, which have seen them; >= 1.
    """
    if is_auto(n_sweeps) and lesson.is_exact:
        return _unrefined(lesson, "none: there is nothing to gain")
    if n_sweeps == 0:
        return lesson, 1.0
    if not _squares_fit(observations):
        return _unrefined(lesson, "none: squares of such numbers leave the range; rescale the data")
    if not is_auto(n_sweeps):
        if lesson.space.rank == 0:
            return lesson, 1.0
        verdict = _Verdict(True, n_sweeps, np.zeros(0), 0.0, [])
        if _hidable(observations).size:
            verdict = _Judgement(observations, lesson, rng, 1).of_asked(n_sweeps)
        return _carried_out(observations, lesson, verdict, ", as asked for")
    if lesson.space.rank == 0 or _hidable(observations).size < 2:
        return _unrefined(lesson, "none: too few entries to judge by")
    kinds = [False] * (lesson.noise_variance > 0) + [True] * _rows_are_affordable(observations, lesson)
    if not kinds:
        return _unrefined(lesson, "none: sweeps over the rows would take far longer than all else")
    judgement = _Judgement(observations, lesson, rng, _folds(observations))
    others = judgement.of_promising(kinds)
    best = none = judgement.none
    for verdict in sorted(others, key=lambda v: (v.by_rows, v.loss)):
        best = verdict if verdict.beats(best) else best
    if best is none:
        return _unrefined(lesson, "none: hidden entries were not predicted better")
    gain = f"{1 - np.sqrt(best.loss / none.loss):.1%}"
    space = best.left[0][0] if judgement.hides_few else None
    return _carried_out(observations, lesson, best, f": hidden entries were predicted {gain} better", space)


def _squares_fit(o: Observations) -> bool:
    """Whether variances of the entries, and products of two of them, are floating-point numbers and not zero."""
    return _SMALL < max(float(o.values.max(initial=0)), -float(o.values.min(initial=0))) < _LARGE


def _unrefined(lesson: Lesson, words: str) -> tuple[Lesson, float]:
    return replace(lesson, choices={**lesson.choices, "refine": words}), 1.0


def _carried_out(
    o: Observations, lesson: Lesson, verdict: _Verdict, why: str, space: ColumnSpace | None = None
) -> tuple[Lesson, float]:
    """The sweeps that won, now with all entries, unless the space that they lead to is known."""
    one = verdict.n_sweeps == 1
    learned = f"that learn{'s' if one else ''} the prior from the partial columns too"
    what = "over rows and columns" if verdict.by_rows else learned
    said = f"{verdict.n_sweeps} sweep{'' if one else 's'} {what}{why}"
    if space is None:
        has_all = verdict.by_rows or _rows_are_affordable(o, lesson)
        taught = o if has_all else _taught_by(o, _asked(o), lesson)
        *_, space = _sweeps(lesson.space, lesson.noise_variance, taught, verdict.by_rows, verdict.n_sweeps)
    choices = {**lesson.choices, "refine": said}
    if "fit" in choices:
        choices["fit"] = f"before the refinement, {choices['fit']}"
    refined = replace(lesson, space=space, choices=choices, moved_rows=verdict.by_rows)
    return refined, verdict.optimism(lesson.noise_variance)


def _sweeps(
    space: ColumnSpace, noise: float, o: Observations, by_rows: bool, n_sweeps: int, first: _Coefficients | None = None
):
    """The space after each sweep; `first` are the coefficients with which they begin, if these are known."""
    across = _unweighted_where_full(o).transposed() if by_rows else None
    for _ in range(n_sweeps):
        space, first = _relearned(space, noise, first or _coefficients(space, noise, o), across), None
        yield space


@dataclass(frozen=True)
class _Coefficients:
    """Those of all columns.

    Attributes
    ----------
    Z : array of shape (r, n)
        Less their mean; 0 for columns that teach nothing.
    center : array of shape (m,) or None
        To which the mean belongs, if there is one.
    covariance : array of shape (r, r)
        Of the coefficients, with their uncertainty.
    n_full : int
        The number of full columns.
    """

    Z: np.ndarray
    center: np.ndarray | None
    covariance: np.ndarray
    n_full: int


def _coefficients(space: ColumnSpace, noise: float, o: Observations) -> _Coefficients:
    Z, status = solve_columns(space, o, penalty=penalty_of(space, noise))
    taught = np.isin(status, (Status.FULL, Status.SOLVED, Status.PRIOR)) & _is_sane(Z, space.variances)
    Z = np.where(taught, Z, 0.0).astype(np.float64)
    k, center = max(1, int(taught.sum())), None
    if space.center is not None:
        mean = Z.sum(axis=1) / k
        center = space.center.astype(np.float64) + space.basis.astype(np.float64) @ mean
        Z -= np.where(taught, mean[:, None], 0.0)
    covariance = Z @ Z.T / k
    if noise:
        covariance += _mean_uncertainty(space, noise, o, taught)
    return _Coefficients(Z, center, covariance, o.full_columns.size)


def _relearned(space: ColumnSpace, noise: float, known: _Coefficients, across: Observations | None) -> ColumnSpace:
    """The space after a sweep over the columns, and over the rows if `across` has the observations by rows."""
    U, dtype = space.basis.astype(np.float64), space.basis.dtype
    squares, V = (x[..., ::-1] for x in np.linalg.eigh(known.covariance))
    P, S = U @ V, np.sqrt(np.maximum(squares, 0))
    if across is not None and space.rank:
        moves = _row_moves(U, known.center, noise, known.Z, across, dtype)
        P, S, _ = np.linalg.svd((P + moves @ V) * S, full_matrices=False)  # no longer orthonormal
    kept = 1e-12 * S.max(initial=0) < S
    return replace(
        space,
        basis=np.ascontiguousarray(fix_signs(P[:, kept]).astype(dtype)),
        singular_values=S[kept] * np.sqrt(max(1, known.n_full)),
        center=None if known.center is None else known.center.astype(dtype),
        variances=S[kept] ** 2,
    )


def _is_sane(Z, variances) -> np.ndarray:
    """Columns whose size is not out of all proportion to that of the full ones; a wild one must not teach the rest."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs(Z).max(axis=0, initial=0) <= _WILD * np.sqrt(variances.sum())


def _mean_uncertainty(space: ColumnSpace, noise: float, o: Observations, taught) -> np.ndarray:
    """Posterior covariance of the coefficients, averaged over the columns; of many partial columns over some."""
    v, r = space.variances, space.rank
    partial = o.partial_columns[taught[o.partial_columns]]
    d, k = o.full_columns.size, partial.size
    total = d * np.diag(v * noise / (v + noise))
    if k:
        asked = o.take(_evenly(partial, _UNSURE_COLUMNS))
        root = np.sqrt(v)
        total += k * root[:, None] * (np.eye(r) - _explained(space, noise, asked) / asked.shape[1]) * root
    return total / (d + k)


def _explained(space: ColumnSpace, noise: float, o: Observations) -> np.ndarray:
    """The sum over columns of B' (B B' + t I)^-1 B with B = sqrt(W) U_O sqrt(v), shape (r, r)."""
    F = space.basis.astype(np.float64) * np.sqrt(space.variances)
    roots = None if o.weights is None else np.sqrt(o.weights.astype(np.float64))

    def part(at):
        B = F[o.rows[at]]
        return _explained_by(B if roots is None else B * roots[at][:, :, None], noise)

    return sum(in_threads(part, columns_alike(o, space.rank)), np.zeros((space.rank, space.rank)))


def _explained_by(B, noise) -> np.ndarray:
    k, s, r = B.shape
    if s < r:
        K = np.matmul(B, B.transpose(0, 2, 1))
        K += np.maximum(noise, least_noise(B))[:, None, None] * np.eye(s)
        L = np.linalg.cholesky(K)
        G = np.linalg.solve(L, B).reshape(-1, r)
        return G.T @ G
    try:
        left = np.linalg.inv(np.matmul(B.transpose(0, 2, 1), B) / noise + np.eye(r))
    except np.linalg.LinAlgError:  # the noise is lost beside such entries: without squares
        stacked = np.concatenate([B, np.broadcast_to(np.sqrt(noise) * np.eye(r), (k, r, r))], axis=1)
        root = np.sqrt(noise) * np.linalg.inv(np.linalg.qr(stacked, mode="r"))
        left = np.matmul(root, root.transpose(0, 2, 1))
    return k * np.eye(r) - left.sum(axis=0)


def _row_moves(U, center, noise: float, Z, across: Observations, dtype) -> np.ndarray:
    """delta of every row, shape (m, r); zero for rows whose entries do not determine it."""
    m = U.shape[0]
    D, V = np.linalg.eigh(Z @ Z.T)
    kept = 1e-12 * D[-1] < D
    D, V = D[kept], V[:, kept]
    Q = np.ascontiguousarray(((V.T @ Z).T / np.sqrt(D)).astype(dtype))
    residual = _residuals(U, center, Z, across, dtype)
    idle = ~Z.any(axis=0)
    if idle.any():
        residual[idle[across.rows]] = 0.0  # of columns that teach nothing, however wild they are
    rows = across._trusted(values=residual)
    turned = ColumnSpace(Q, np.sqrt(D), None, D / m, np.nan)
    with np.errstate(over="ignore"):
        penalty = np.minimum(noise * m / D, np.finfo(np.float64).max)
    W, status = solve_columns(turned, rows, penalty=penalty)
    moved = np.isin(status, [s for s in Status if s.is_filled]) & np.isfinite(W).all(axis=0)
    return (np.where(moved, W, 0.0).T / np.sqrt(D)) @ V.T


def _residuals(U, center, Z, across: Observations, dtype) -> np.ndarray:
    """x_ij - c_i - u_i' z_j of every entry, in the order of the transposed observations."""
    from ..kernels import column_kernels

    result, factors = np.empty(across.values.size, dtype), np.ascontiguousarray(Z.T)
    center = np.zeros(U.shape[0]) if center is None else center

    def work(piece):
        column_kernels.residuals(factors, U, center, across.indptr, across.rows, across.values, *piece, result)

    in_threads(work, pairwise(np.linspace(0, across.shape[1], _PIECES + 1).astype(int).tolist()))
    return result


def _unweighted_where_full(o: Observations) -> Observations:
    if o.weights is None:
        return o
    weights = o.weights.copy()
    for j in o.full_columns:
        weights[o.indptr[j] : o.indptr[j + 1]] = 1.0
    return replace(o, weights=weights)


def _rows_are_affordable(o: Observations, lesson: Lesson) -> bool:
    r = lesson.space.rank
    s = o.n_observed[o.partial_columns].astype(np.float64)
    return o.values.size * r**2 <= max(_CHEAP, _FAIR * float((s * np.minimum(s, r) * r).sum()))


def _folds(o: Observations) -> int:
    """Several where the partial columns have few entries, and each of them counts, but not of very large data."""
    is_large = o.values.size > _LARGE_DATA
    return _FOLDS if o.n_observed[_hidable(o)].sum() < _MANY_ENTRIES and not is_large else 1


class _Judgement:
    """What sweeps are worth, by entries hidden from them in some folds.

    Attributes
    ----------
    none : _Verdict
        Of no sweep.
    hides_few : bool
        Whether what the sweeps have seen is nearly all that there is.
    """

    def __init__(self, o: Observations, lesson: Lesson, rng, n_folds: int):
        self.o, self.lesson, self.columns = o, lesson, _asked(o)
        self.size = size_of(o.take(self.columns))
        turns = _turns(o, self.columns, rng)
        self.hidden = [np.flatnonzero(turns == fold) for fold in range(n_folds)]
        self.hidden_columns = [o.columns_of(hidden) for hidden in self.hidden]
        self.hides_few = n_folds == 1 and self.hidden[0].size <= _FEW_HIDDEN * o.n_observed[o.partial_columns].sum()
        self.visible = [o.only(turns != fold) for fold in range(n_folds)]
        self.seen = [visible.take(self.columns) for visible in self.visible]
        self.none = self._verdict(False, 0, [lesson.space] * n_folds)

    def of_promising(self, kinds) -> list[_Verdict]:
        """Of sweeps of these kinds: one of each, and more of those whose first was not clearly worse than another's."""
        parts = (_taught_by(o, self.columns, self.lesson) for o in self.visible)
        taught = self.visible if True in kinds else list(parts)
        begun = [_coefficients(self.lesson.space, self.lesson.noise_variance, o) for o in taught]  # alike for all kinds
        trials = [self._trial(by_rows, range(1, _MOST_SWEEPS + 1), taught, begun) for by_rows in kinds]
        firsts = [next(trial) for trial in trials]
        best, found = min(firsts, key=lambda v: v.loss), list(firsts)
        for trial, first in zip(trials, firsts):
            if not is_no_chance(first.losses - best.losses, _CLEAR):
                found += trial
        return found

    def of_asked(self, n_sweeps: int) -> _Verdict:
        """Of so many sweeps over the rows, whatever they are worth."""
        return next(self._trial(True, [n_sweeps], self.visible, [None] * len(self.visible)))

    def _trial(self, by_rows: bool, counts, taught, begun):
        """Of those numbers of sweeps, as long as one more promises a gain: gains shrink from one to the next."""
        space, noise = self.lesson.space, self.lesson.noise_variance
        folds = [_sweeps(space, noise, o, by_rows, max(counts), first) for o, first in zip(taught, begun)]
        last, before = self.none, None
        for n, spaces in enumerate(zip(*folds), 1):
            if n in counts:
                verdict = self._verdict(by_rows, n, spaces)
                yield verdict
                gain = last.loss - verdict.loss
                promised = gain * min(1.0, gain / before) if before else gain
                if gain <= 0 or promised <= _PROMISING * verdict.loss:
                    return
                last, before = verdict, gain

    def _verdict(self, by_rows: bool, n_sweeps: int, spaces) -> _Verdict:
        left = list(zip(spaces, self.seen))
        folds = zip(left, self.hidden, self.hidden_columns)
        errors = np.concatenate([self._errors(*fold, hidden, columns) for fold, hidden, columns in folds]) / self.size
        losses = column_losses(errors**2, np.concatenate(self.hidden_columns))
        return _Verdict(by_rows, n_sweeps, losses, float(np.mean(np.abs(errors)) * self.size), left)

    def _errors(self, space: ColumnSpace, seen: Observations, hidden, columns) -> np.ndarray:
        """Of hidden entries, predicted from those seen of their columns; 0 counts where nothing predicts."""
        Z, status = solve_columns(space, seen, penalty=penalty_of(space, self.lesson.noise_variance))
        place = np.searchsorted(self.columns, columns)
        rows, values = self.o.rows[hidden], self.o.values[hidden]
        fitted = np.einsum("kr,kr->k", space.basis[rows].astype(np.float64), Z.T[place].astype(np.float64))
        errors = values - fitted - (0 if space.center is None else space.center[rows])
        unfilled = ~np.isin(status, [s for s in Status if s.is_filled])[place] | ~np.isfinite(errors)
        errors[unfilled] = values[unfilled]
        return errors


def _seen_errors(space: ColumnSpace, noise: float, asked: Observations) -> float:
    """Mean size of the errors of entries left out, though the sweeps have seen them."""
    errors = leave_one_out(space, asked, [noise])[0]
    return float(np.nanmean(np.abs(errors))) if np.isfinite(errors).any() else 0.0


def _hidable(o: Observations) -> np.ndarray:
    """Partial columns with entries enough that some can be hidden."""
    return o.partial_columns[o.n_observed[o.partial_columns] >= 3]


def _turns(o: Observations, columns, rng) -> np.ndarray:
    """For every entry the fold in which it is hidden, -1 for never; each fold hides its share of every column."""
    turns = np.full(o.values.size, -1, np.int8)
    period = round(1 / _HIDDEN_SHARE)
    for j in columns:
        s = int(o.n_observed[j])
        # The first fold hides from every column, however few entries it has.
        turns[o.indptr[j] : o.indptr[j + 1]] = rng.permutation(np.arange(s) % max(2, min(period, s)))
    return turns


def _part(o: Observations, partial) -> Observations:
    """The full columns and some of the partial ones."""
    if partial.size == o.partial_columns.size:
        return o
    columns = np.sort(np.concatenate([o.full_columns, partial]))
    return replace(o.take(columns), full_columns=np.searchsorted(columns, o.full_columns), full_scales=o.full_scales)


def _taught_by(o: Observations, asked, lesson: Lesson) -> Observations:
    """The full columns and, of many partial ones, some from which the prior is learned, all `asked` among them."""
    most = max(_TAUGHT_COLUMNS[0], _TAUGHT_COLUMNS[1] * lesson.space.rank)
    return _part(o, np.union1d(_evenly(o.partial_columns, most), asked))


def _asked(o: Observations) -> np.ndarray:
    """The columns of which entries are hidden."""
    able = _hidable(o)
    return _evenly(able, max(20, int(_ASKED_ENTRIES / max(1.0, np.median(o.n_observed[able])))))


def _evenly(columns, most: int) -> np.ndarray:
    """At most so many of the columns, evenly chosen."""
    return columns if columns.size <= most else columns[np.linspace(0, columns.size - 1, most).astype(int)]
