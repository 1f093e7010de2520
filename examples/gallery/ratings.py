# %% [markdown]
# # Ratings
#
# 400 people rate films with one to five stars. Each person has seen about one film in
# six of 120. The ratings are made: two tastes, a general level of every film and every
# person, and noise.

# %%
import matplotlib.pyplot as plt
import numpy as np

import colonnade as co

rng = np.random.default_rng(0)
n_films, n_people = 120, 400
liking = rng.normal(0, 0.6, (n_films, 2)) @ rng.normal(0, 1, (2, n_people))
stars = 3.3 + rng.normal(0, 0.5, (n_films, 1)) + rng.normal(0, 0.4, n_people) + liking
stars = np.clip(np.round(stars + rng.normal(0, 0.5, stars.shape)), 1, 5)
seen = rng.random(stars.shape) < 1 / 6
table = np.where(seen, stars, np.nan)
print(f"{seen.sum():,} ratings are known, {seen.mean():.0%} of all.")

# %% [markdown]
# `bounds` keeps predictions and intervals between one star and five. The usual baseline
# adds the level of the film and the level of the person.

# %%
completion = co.complete(table, bounds=(1, 5))
filled = completion.to_dense()

film = np.nanmean(table, axis=1, keepdims=True)
person = np.nan_to_num(np.nanmean(table - film, axis=0))
baseline = np.clip(film + person, 1, 5)


def error(guess):
    return np.sqrt(np.mean((guess - stars)[~seen] ** 2))


errors = {"levels only": error(baseline), "colonnade": error(filled)}
for name, value in errors.items():
    print(f"{name:12} error {value:.2f} stars")

# %% [markdown]
# A recommendation with an interval says which films are a safe choice. `explain` gives
# the reasons of one prediction.

# %%
who = 7
unseen = np.flatnonzero(~seen[:, who])
order = unseen[np.argsort(filled[unseen, who])[::-1]]
print(f"Recommended to person {who}: films {order[:5].tolist()}")
print(completion.explain(int(order[0]), who))

# %%
rows, columns = np.nonzero(~seen)
ends = completion.interval(rows, columns, level=0.9)
coverage = np.mean(
    (ends[0] <= stars[rows, columns]) & (stars[rows, columns] <= ends[1])
)
print(f"{coverage:.0%} of the unseen ratings lie in their 90 % intervals.")

# %%
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
some = order[::7]  # every seventh film, from the best to the worst
low, high = completion.interval(some, who, level=0.8)
places = np.arange(some.size)
axes.vlines(
    places, low, high, color="tab:orange", alpha=0.4, lw=8, label="80 % interval"
)
axes.plot(
    places, filled[some, who], "_", ms=14, mew=2, color="tab:orange", label="predicted"
)
axes.plot(places, stars[some, who], "*", ms=11, color="0.3", label="true rating")
axes.set_xticks(places, [f"film {k}" for k in some], rotation=40, ha="right")
axes.set(
    ylabel="stars", ylim=(0.8, 5.2), title=f"Films that person {who} has not rated"
)
axes.legend(fontsize="small", ncols=3)
plt.show()
