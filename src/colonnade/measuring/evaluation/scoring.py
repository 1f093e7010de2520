"""Scores of all models, with intervals and remarks in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..._support.arguments import as_choice, as_generator, as_indices, as_real, as_seed
from ..._support.threads import one_blas_thread
from ...data.observations import Observations, as_observations
from .ability import Prediction, predict
from .answers import Answers, as_answers
from .chosen import recognised, scores_of_chosen
from .estimate import estimate_parts
from .intervals import ends
from .item_model import fit_item_model
from .questions import DESIGNS, Questions, as_questions
from .remarks import remarks_of
from .sampling import Sampling
from .tasks import Tasks, as_clusters, as_tasks
from .trust import Trust, combine, degrees_of_freedom, hide_in_turn, learned_trust, score_range, t_quantile

FIELDS = [
    ("n_observed", np.int64),
    ("score", float),
    ("low", float),
    ("high", float),
    ("rank", np.int64),
    ("rank_low", np.int64),
    ("rank_high", np.int64),
    ("predicted", float),
    ("own_weight", float),
]


@dataclass(frozen=True)
class Estimates:
    """Unit-scale arrays (n,) of one domain; of models without a gap they are exact, with variance 0."""

    score: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    predicted: np.ndarray
    own_weight: np.ndarray
    beyond: np.ndarray
    correction_error: np.ndarray
    widening: np.ndarray
    freedom: np.ndarray  # Of Student's t; infinite where no variance was estimated from answers.
    influence: np.ndarray


@dataclass(frozen=True)
class Scores:
    """What `score` found.

    Attributes
    ----------
    table : record array of shape (n,)
        n_observed, score, low, high, rank, rank_low, rank_high as `colonnade.leaderboard.scores` gives them; predicted
        is what the known models alone predict, own_weight how far the model's own answers correct it (1: in full).
    tasks : dict of record arrays of shape (n,)
        score, low and high in every task; empty without groups.
    remarks : list of (int, str)
        A column and a sentence about it.
    level : float
    surprises : array of shape (m, n)
        Left-out residuals of the answers in units of their deviation; NaN where there is none.
    expected : array of shape (m, n)
        What was expected of the answers when they were left out; NaN where there is no surprise.
    """

    table: np.recarray
    tasks: dict
    remarks: list
    level: float
    surprises: np.ndarray
    expected: np.ndarray
    observations: Observations
    answers: Answers
    estimates: Estimates
    population: Tasks
    clusters: np.ndarray | None

    @property
    def names(self) -> list[str]:
        names = self.observations.column_names
        return [str(j) for j in range(self.table.size)] if names is None else [str(name) for name in names]

    @property
    def new(self) -> np.ndarray:
        """Columns with gaps, the best first."""
        partial = np.flatnonzero(~self.answers.full)
        return partial[np.argsort(-self.table.score[partial], kind="stable")]

    def more_to_halve(self) -> np.ndarray:
        """How many more questions would halve the interval of each model, shape (n,); 0 for models without a gap.

        Variances fall as 1 / k - 1 / m with the number k of answers; without any, as for the first one.
        """
        m, answered = self.n_counted
        k = np.maximum(answered, 1)
        # 1 / (1 / m + (1 / k - 1 / m) / 4) in whole numbers, so that no rounding asks for one question more.
        return -(-4 * m * k // (m + 3 * k)).astype(np.int64) - answered

    @property
    def counted(self) -> np.ndarray:
        """Which questions have a weight, shape (m,)."""
        return self.population.weights > 0

    @property
    def n_counted(self) -> tuple[int, np.ndarray]:
        """Questions with a weight, and how many of them each model answered: tasks without weight do not count."""
        return int(self.counted.sum()), self.answers.seen[self.counted].sum(axis=0)


@one_blas_thread()
def score(
    data,
    *,
    level: float = 0.9,
    design: str = "auto",
    groups=None,
    task_weights="micro",
    clusters=None,
    questions: Questions | str | None = None,
    known=None,
    random_state=None,
) -> Scores:
    """Scores of models from the questions that each has answered.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows and models as columns; a higher value is better. Weights of Observations are numbers of
        attempts.
    level : float
        Probability with which an interval holds the score.
    design : "auto", "balanced", "random" or "chosen"
        How the questions of partial models were taken. Balanced and random ones have the same estimate. "auto"
        recognises chosen ones if the full columns are those that they were chosen by.
    groups : array of shape (m,), optional
        Task of every question.
    task_weights : "micro", "macro" or dict
        The score is the mean over all questions, the mean over tasks, or the mean over tasks with these weights.
    clusters : array of shape (m,), optional
        Passage or original of every question, where questions were asked or left out by whole clusters.
    questions : Questions or path, optional
        What `draw` returned or its file, for models that were asked these questions. Needed if not every question of a
        task had the same chance. Other questions count as given: as a random draw, with a remark.
    known : array of int, optional
        Columns to learn from. Default: those with more than half as many answers as the fullest.
    random_state : None, int or numpy Generator
        Groups in which known models are hidden; None is the same every time.

    Returns
    -------
    Scores
    """
    o = as_observations(data)
    level = as_real("level", level, 0, 1, "()")
    design = as_choice("design", design, ("auto", *DESIGNS))
    tasks, clusters = as_tasks(o.shape[0], groups, task_weights), as_clusters(o.shape[0], clusters)
    known = None if known is None else np.unique(as_indices("known", known, o.shape[1]))
    seed = 0 if random_state is None else as_seed(random_state)  # One for both estimates: neither shifts the other.
    answers = as_answers(o, known)
    by_task = [tasks.domain(t) for t in range(len(tasks.names))] if len(tasks.names) > 1 else []
    questions = as_questions(questions)
    design = questions.design if questions is not None and design == "auto" else design
    if design == "chosen" and not tasks.is_uniform:
        raise ValueError('design "chosen" is for the mean over all questions; draw the questions for weighted tasks')
    recorded = None if questions is None or design == "chosen" else questions.probabilities_of_rows(o)
    sampling = Sampling(tasks.strata, clusters, recorded)
    counted = tasks.weights > 0
    found, surprises, expected = estimate_all(answers, [tasks.weights, *by_task], sampling, level, as_generator(seed))
    table = _table(o, answers, found[0])
    remarks = remarks_of(answers, found[0], sampling, counted)
    if design in ("auto", "chosen") and tasks.is_uniform:
        chosen = recognised(o) if design == "auto" else ~answers.full
        if chosen.any():
            remarks = [one for one in remarks if not chosen[one[0]]]
            remarks += _use_chosen(answers, table, found[0], chosen, (o, level, as_generator(seed)))
    named = {name: _short_table(answers, one) for name, one in zip(tasks.names, found[1:])}
    return Scores(table, named, sorted(remarks), level, surprises, expected, o, answers, found[0], tasks, clusters)


def estimate_all(answers: Answers, domains, sampling: Sampling, level: float, rng):
    """A list of estimates of every domain, surprises (m, n) and expected answers (m, n)."""
    results = [_exact(answers, domain) for domain in domains]
    surprises, expected = np.full((2, *answers.Y.shape), np.nan)
    partial = np.flatnonzero(~answers.full)
    if not partial.size:
        return results, surprises, expected
    new = np.setdiff1d(partial, answers.known)
    patterns = answers.seen[:, new if new.size else partial]
    hidden, models = [], [(new, fit_item_model(*_columns(answers, answers.known), answers.scale))]
    for columns, model, one in hide_in_turn(answers, models[0][1], patterns, domains, sampling, rng):
        left = np.setdiff1d(np.intersect1d(columns, partial), np.concatenate([c for c, _ in models]))
        models.append((left, model))  # A partial known model is scored by a model that did not learn from it.
        hidden.append(one)
    left = np.setdiff1d(partial, np.concatenate([c for c, _ in models]))
    models.append((left, models[0][1]))
    ranges = [score_range(answers, answers.known, domain) for domain in domains]
    trusts = [learned_trust(hidden, q, ranges[q], level) for q in range(len(domains))]
    for columns, model in models:
        if columns.size:
            Y, weights = _columns(answers, columns)
            prediction = predict(model, Y, weights)
            surprises[:, columns], expected[:, columns] = _surprise(prediction, Y, weights, answers.scale)
            for q, domain in enumerate(domains):
                population = np.repeat(domain[:, None], columns.size, axis=1)
                parts = estimate_parts(prediction, Y, weights, population, sampling, model.dispersion)
                _fill(results[q], columns, parts, trusts[q], level, answers.scale.bounded)
    return results, surprises, expected


def _surprise(prediction: Prediction, Y, weights, scale) -> tuple[np.ndarray, np.ndarray]:
    """Left-out residuals in units of their deviation, and expected answers, both (m, n)."""
    standardised = prediction.residual / np.maximum(np.sqrt(prediction.noise), 1e-9)
    expected = scale.from_unit(Y - prediction.residual)
    return np.where(weights > 0, standardised, np.nan), np.where(weights > 0, expected, np.nan)


def _columns(answers: Answers, columns):
    return answers.Y[:, columns], answers.weights[:, columns]


def _exact(answers: Answers, domain) -> Estimates:
    """Scores of models that answered everything; those of others are filled in later."""
    score = domain @ answers.Y
    zero = np.zeros_like(score)
    return Estimates(
        score, zero, score.copy(), score.copy(), score.copy(), zero + 1, zero.copy(), zero.copy(), zero + 1,
        zero + np.inf, np.zeros(answers.Y.shape),
    )  # fmt: skip


def _fill(result: Estimates, columns, parts, trust: Trust, level: float, bounded: bool) -> None:
    combined = combine(parts, trust.bias_variances, trust.low, trust.high)
    freedom = degrees_of_freedom(parts.n_answers)
    quantile = trust.widening * stats.t.ppf((1 + level) / 2, freedom)
    complete = (parts.own_variance == 0) & (parts.model_variance == 0)
    variance = np.where(complete, 0.0, combined.variance)
    low, high = ends(combined.score, variance, quantile, bounded)
    score = np.clip(combined.score, 0.0, 1.0) if bounded else combined.score
    own = np.where(np.isfinite(parts.own_variance), parts.own_variance, 0.0)
    for field, value in (
        (result.score, score),
        (result.variance, variance),
        (result.low, np.minimum(low, score)),
        (result.high, np.maximum(high, score)),
        (result.predicted, parts.prediction),
        (result.own_weight, combined.own_weight),
        (result.beyond, combined.beyond),
        (result.correction_error, np.sqrt(own)),
        (result.widening, trust.widening),
        (result.freedom, np.where(complete, np.inf, freedom)),
    ):
        field[columns] = value
    result.influence[:, columns] = parts.influence


def _table(o: Observations, answers: Answers, found: Estimates) -> np.recarray:
    table = np.zeros(o.shape[1], FIELDS).view(np.recarray)
    table.n_observed, table.own_weight = o.n_observed, found.own_weight
    for field in ("score", "low", "high", "predicted"):
        table[field] = answers.scale.from_unit(getattr(found, field))
    _make_exact(table, o)
    _rank(table, o)
    return table


def _make_exact(table, o: Observations) -> None:
    exact = o.full_matrix().mean(axis=0, dtype=np.float64)
    uniform = np.isclose(table.score[o.full_columns], exact, rtol=1e-9, atol=0)
    table.score[o.full_columns] = np.where(uniform, exact, table.score[o.full_columns])
    for field in ("low", "high", "predicted"):
        table[field][o.full_columns] = table.score[o.full_columns]


def _rank(table, o: Observations) -> None:
    """Rank 1 plus the number of full columns with a larger score."""
    known = np.sort(table.score[o.full_columns])
    for rank, value in (("rank", table.score), ("rank_low", table.high), ("rank_high", table.low)):
        table[rank] = 1 + known.size - np.searchsorted(known, value, side="right")


def _short_table(answers: Answers, found: Estimates) -> np.recarray:
    table = np.zeros(found.score.size, [("score", float), ("low", float), ("high", float)]).view(np.recarray)
    for field in table.dtype.names:
        table[field] = answers.scale.from_unit(getattr(found, field))
    return table


def _use_chosen(answers: Answers, table, found: Estimates, chosen, given) -> list:
    """Replace the scores of columns with chosen questions by those of the model that they were chosen for.

    `given` are the observations, the level and the random generator of `scores_of_chosen`.
    """
    o, level, _ = given
    unlike = found.beyond >= 0.5
    score, half = scores_of_chosen(*given)
    limits = o.values.min(), o.values.max()
    half = np.minimum(half, limits[1] - limits[0])
    for field, value in (("score", score), ("low", score - half), ("high", score + half), ("predicted", score)):
        table[field][chosen] = value[chosen].clip(*limits)
        getattr(found, field)[chosen] = answers.scale.to_unit(table[field][chosen])
    found.variance[chosen] = (half / t_quantile(level, 0) / answers.scale.width)[chosen] ** 2
    for field, value in ((found.own_weight, 0.0), (found.beyond, 0.0), (found.widening, 1.0), (found.freedom, np.inf)):
        field[chosen] = value
    found.influence[:, chosen] = 0.0
    table.own_weight[chosen] = 0.0
    _rank(table, o)
    words = "its questions were chosen, not drawn: the score is right only if the model is like the known ones"
    doubt = ", and its answers put it beyond them: draw its questions with design balanced"
    return [(int(j), words + doubt * bool(unlike[j])) for j in np.flatnonzero(chosen)]
