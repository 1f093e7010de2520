# %% [markdown]
# # Weather stations with outages
#
# Forty stations report the temperature of every day of a year. Stations fail for days
# or weeks, and three of them start late. No station and no day is complete. The data
# are made, so the true values are known.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import colonnade as co

rng = np.random.default_rng(0)
days = pd.date_range("2025-01-01", periods=365)
stations = [f"station {k:02d}" for k in range(40)]

# Three weather patterns move over the country. Each station feels them in its own way.
season = -10 * np.cos(2 * np.pi * np.arange(365) / 365)
patterns = np.zeros((365, 3))
for day in range(1, 365):
    patterns[day] = 0.8 * patterns[day - 1] + rng.normal(0, 2, 3)
altitude = rng.uniform(0, 2, 40)  # kilometres
truth = (
    12
    - 6.5 * altitude
    + np.outer(season, rng.uniform(0.7, 1.2, 40))
    + patterns @ rng.normal(0.6, 0.4, (3, 40))
)
truth = pd.DataFrame(truth + rng.normal(0, 0.7, truth.shape), days, stations)

# %% [markdown]
# Every station has five outages of 5 to 35 days. One reading in twenty is lost for no
# reason.

# %%
seen = rng.random(truth.shape) > 0.05
for column in range(40):
    for start in rng.integers(0, 330, 5):
        seen[start : start + rng.integers(5, 35), column] = False
seen[:150, :3] = False  # Three stations start in June.
table = truth.where(seen)
print(f"{1 - seen.mean():.0%} of the readings are missing.")

# %% [markdown]
# One call fills the table. Most people interpolate in time instead, so the two are
# compared at the missing readings.

# %%
completion = co.complete(table)
filled = completion.to_frame()
print(completion.verdict)


def error(guess):
    return np.sqrt(np.mean((guess - truth).to_numpy()[~seen] ** 2))


by_time = table.interpolate(limit_direction="both")
print(f"Error of interpolation in time: {error(by_time):.2f} degrees.")
print(
    f"Error of colonnade: {error(filled):.2f} degrees. The noise of a reading is 0.70."
)

# %% [markdown]
# `interval` says how far a filled value may be off. Rows and columns are named as in
# the table.

# %%
rows, columns = np.nonzero(~seen)
low, high = completion.interval(rows, columns, level=0.9)
missing = truth.to_numpy()[rows, columns]
coverage = np.mean((low <= missing) & (missing <= high))
print(f"{coverage:.0%} of the missing readings lie in their 90 % intervals.")

# %%
name, part = stations[0], slice(110, 250)  # April to September
missing = ~seen[part, 0]
low, high = completion.interval(np.arange(365)[part], name)
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
band = {"color": "tab:orange", "alpha": 0.35, "lw": 0, "label": "90 % interval"}
axes.fill_between(days[part], low, high, **band)
axes.plot(
    days[part], filled[name][part].where(missing), color="tab:orange", label="filled"
)
axes.plot(
    days[part],
    truth[name][part].where(missing),
    ".",
    color="0.3",
    label="true, missing",
)
axes.plot(days[part], table[name][part], "o", ms=4, color="tab:blue", label="observed")
axes.set(ylabel="degrees Celsius", title=f"{name} starts in June and fails later")
axes.set_xticks(days[part][days[part].day == 1])
axes.margins(y=0.2)
axes.legend(ncols=4, fontsize="small", loc="lower center")
plt.show()
