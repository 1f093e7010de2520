# %% [markdown]
# # Scores of new models
#
# A benchmark has 400 questions, and 50 models have answered all of them. Ten new models
# are scored from 50 questions each. The answers are made by an item-response model with
# one ability and two special skills.

# %%
import matplotlib.pyplot as plt
import numpy as np

import colonnade as co

rng = np.random.default_rng(3)
n_questions, n_models, n_new = 400, 60, 10
ability = rng.normal([[0.3], [0], [0]], 1, (3, n_models))
needs = np.abs(rng.normal(0, 0.7, (n_questions, 3))) * (
    rng.random((n_questions, 3)) < [1, 0.4, 0.4]
) + [0.4, 0, 0]
difficulty = rng.normal(0, 1.5, (n_questions, 1))
chance = 1 / (1 + np.exp(difficulty - needs @ ability))
answers = (rng.random(chance.shape) < chance).astype(
    float
)  # Rows are questions, columns are models.
truth = answers.mean(axis=0)[-n_new:]

# %% [markdown]
# `select_questions` chooses the 50 questions that tell most about the total score. The
# new models answer only those.

# %%
questions = co.leaderboard.select_questions(answers[:, :-n_new], 50)
asked = answers.copy()
asked[:, -n_new:] = np.nan
asked[questions, -n_new:] = answers[questions, -n_new:]

scores = co.leaderboard.scores(asked, level=0.9)[-n_new:]
print("model  score  interval        true   rank")
for k, row in enumerate(scores):
    interval, ranks = (
        f"{row.low:.3f} - {row.high:.3f}",
        f"{row.rank_low} to {row.rank_high}",
    )
    print(f"{k:5}  {row.score:.3f}  {interval}   {truth[k]:.3f}  {ranks}")

# %% [markdown]
# The plain way is to average 50 random answers. It is repeated 200 times here to know
# its usual error.

# %%
draws = [rng.choice(n_questions, 50, replace=False) for _ in range(200)]
random = np.array([answers[rows, -n_new:].mean(axis=0) for rows in draws])
errors = {
    "50 random answers, averaged": np.sqrt(np.mean((random - truth) ** 2)),
    "50 chosen answers, colonnade": np.sqrt(np.mean((scores.score - truth) ** 2)),
}
for name, value in errors.items():
    print(f"{name:30} error {value:.3f}")
coverage = np.mean((scores.low <= truth) & (truth <= scores.high))
print(f"{coverage:.0%} of the ten true scores lie in their 90 % intervals.")

# %%
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
order = np.argsort(truth)
places = np.arange(n_new)
axes.vlines(
    places,
    scores.low[order],
    scores.high[order],
    color="tab:orange",
    alpha=0.4,
    lw=9,
    label="90 % interval",
)
axes.plot(
    places,
    scores.score[order],
    "_",
    ms=16,
    mew=2,
    color="tab:orange",
    label="score from 50 chosen answers",
)
axes.plot(
    places, random[0, order], "x", color="tab:blue", label="mean of 50 random answers"
)
axes.plot(
    places, truth[order], "o", ms=5, color="0.2", label="score on all 400 questions"
)
axes.set(xlabel="new model", ylabel="share of right answers", xticks=places)
axes.legend(fontsize="small", loc="lower right")
plt.show()
