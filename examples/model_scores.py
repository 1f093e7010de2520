"""Evaluate models on a fraction of a benchmark.

60 models, 400 questions, answers right or wrong, drawn from an item-response model: a question has a difficulty, asks
for one ability and perhaps for two skills, and half of the questions can be guessed. 50 models answered everything. Of
the 10 others 50 answers are known. How far off is the score, and how often does its interval hold it?

    python examples/model_scores.py                 # 4 benchmarks, some seconds
    python examples/model_scores.py --repeats 24 --questions 25 50 100
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import colonnade as co

N_QUESTIONS, N_MODELS, N_NEW = 400, 60, 10
LEVEL, QUANTILE = 0.9, 1.645


def draw_answers(rng):
    """Answers of shape (questions, models), 1 if right."""
    ability = rng.normal([[0.3], [0], [0]], 1, (3, N_MODELS))
    asked = np.abs(rng.normal(0, 0.7, (N_QUESTIONS, 3))) * (rng.random((N_QUESTIONS, 3)) < [1, 0.4, 0.4]) + [0.4, 0, 0]
    difficulty = rng.normal(0, 1.5, (N_QUESTIONS, 1))
    guess = np.where(rng.random((N_QUESTIONS, 1)) < 0.5, 0.25, 0)
    right = guess + (1 - guess) / (1 + np.exp(difficulty - asked @ ability))
    return (rng.random(right.shape) < right).astype(float)


def write_log(folder, model, answers, numbers):
    """A log as lm-evaluation-harness writes it, with the fields that matter."""
    (folder / model).mkdir(parents=True)
    with open(folder / model / "samples_made_up_2026-01-01T00-00-00.000000.jsonl", "w") as file:
        for number in numbers:
            sample = {"doc_id": int(number), "filter": "none", "metrics": ["acc"], "acc": answers[number]}
            file.write(json.dumps(sample) + "\n")


def walk_through(M, k, folder):
    """From logs to the score of one new model: the three calls that a user needs."""
    for j in range(N_MODELS - 1):
        write_log(folder, f"model{j:02d}", M[:, j], range(N_QUESTIONS))

    known = co.harness.read_logs(folder)
    rows = co.leaderboard.select_questions(known, k)
    samples = co.harness.write_samples(known, rows, folder / "samples.json")

    write_log(folder, "new", M[:, -1], samples["made_up"])  # here the new model is run on them
    everything = co.harness.read_logs(folder)
    new = everything.column_names.tolist().index("new")
    row = co.leaderboard.scores(everything, level=LEVEL)[new]
    print(f"One new model, {k} of {N_QUESTIONS} questions: score {row.score:.3f}, 90 % interval {row.low:.3f} to")
    print(
        f"{row.high:.3f}, in truth {M[:, -1].mean():.3f}; rank {row.rank}, {row.rank_low} to {row.rank_high},", end=" "
    )
    print(f"in truth {1 + (M[:, :-1].mean(axis=0) > M[:, -1].mean()).sum()}.")


def known_part(M, new, rows_of):
    K = M.copy()
    for j in new:
        K[:, j] = np.nan
        K[rows_of[j], j] = M[rows_of[j], j]
    return K


def trial(rng, k):
    """Error, whether the interval holds the truth, its width, and whether that of the rank does, by way of scoring."""
    M = draw_answers(rng)
    truth = M.mean(axis=0)
    new = np.arange(N_MODELS - N_NEW, N_MODELS)
    old = truth[: N_MODELS - N_NEW]
    rank = np.array([1 + (old > truth[j]).sum() for j in new])
    random = {j: rng.choice(N_QUESTIONS, k, replace=False) for j in new}
    balanced = dict.fromkeys(new, co.leaderboard.select_questions(M[:, : N_MODELS - N_NEW], k))
    found = {"random questions, averaged": averages(M, new, random, k, old)}
    for name, rows in (("random questions, scored", random), ("balanced questions, scored", balanced)):
        table = co.leaderboard.scores(known_part(M, new, rows), level=LEVEL)[new]
        found[name] = table.score, table.low, table.high, table.rank_low, table.rank_high
    return {name: judged(*parts, truth[new], rank) for name, parts in found.items()}


def averages(M, new, rows, k, old):
    """The plain way: the mean of the answers, with the normal interval for draws without replacement."""
    mean = np.array([M[rows[j], j].mean() for j in new])
    half = QUANTILE * np.sqrt(mean * (1 - mean) / k * (1 - k / N_QUESTIONS))
    low, high = mean - half, mean + half
    rank_low, rank_high = (np.array([1 + (old > x).sum() for x in end]) for end in (high, low))
    return mean, low, high, rank_low, rank_high


def judged(score, low, high, rank_low, rank_high, truth, rank):
    holds = (low <= truth) & (truth <= high)
    return np.column_stack([score - truth, holds, high - low, (rank_low <= rank) & (rank <= rank_high)])


def main(repeats=4, sizes=(50,), first_seed=0):
    with tempfile.TemporaryDirectory() as folder:
        walk_through(draw_answers(np.random.default_rng(0)), sizes[0], Path(folder))
    results = {}
    for k in sizes:
        print(f"\n{k} of {N_QUESTIONS} questions, {repeats} benchmarks with {N_NEW} new models each")
        print(f"{'':30}{'error':>8}{'holds':>8}{'width':>8}{'rank':>8}")
        trials = [trial(np.random.default_rng(seed), k) for seed in range(first_seed, first_seed + repeats)]
        for name in trials[0]:
            error, holds, width, rank = np.concatenate([one[name] for one in trials]).T
            results[k, name] = np.sqrt(np.mean(error**2)), holds.mean()
            print(f"{name:30}{results[k, name][0]:8.4f}{holds.mean():8.2f}{width.mean():8.3f}{rank.mean():8.2f}")
    print("\nerror: root mean square of score less true score; holds: share of 90 % intervals that hold it; width of")
    print("the interval; rank: share of the intervals for the rank that hold it.")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--questions", type=int, nargs="+", default=[50])
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    main(given.repeats, given.questions, given.first_seed)
