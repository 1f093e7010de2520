# %% [markdown]
# # Spectra from a cheap instrument
#
# 300 samples are mixtures of five substances. A good instrument measured 60 of them at
# 120 wavelengths. A cheap one gave 15 wavelengths of the others, and one reading in ten
# failed. The spectra are made, so the truth is known.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.impute import KNNImputer

import colonnade as co

rng = np.random.default_rng(0)
wavelengths = np.arange(400, 1000, 5)
bands = [(450, 30), (520, 45), (610, 25), (700, 60), (830, 40)]
pure = np.array(
    [np.exp(-0.5 * ((wavelengths - center) / width) ** 2) for center, width in bands]
)
amounts = rng.gamma(2.0, 0.5, (300, 5))
drift = np.outer(rng.normal(0, 0.1, 300), (wavelengths - 700) / 300)
clean = amounts @ pure + drift
names = [f"sample {k:03d}" for k in range(300)]
truth = pd.DataFrame(
    clean + rng.normal(0, 0.01, clean.shape), names, [f"{w} nm" for w in wavelengths]
)

seen = np.zeros(truth.shape, bool)
seen[:, 4::8] = rng.random((300, 15)) < 0.9
seen[rng.choice(300, 60, replace=False)] = True
table = truth.where(seen)
print(f"{1 - seen.mean():.0%} of the table is missing.")

# %% [markdown]
# Neighbours cannot follow a mixture that no complete sample resembles. A low-rank model
# can: five substances and a drift are six patterns, and 15 readings determine six
# numbers. Some rows and no columns are complete, so the rows are filled.

# %%
completion = co.complete(table)
print(completion.verdict)


def error(filled):
    return np.sqrt(np.mean((np.asarray(filled) - truth.to_numpy())[~seen] ** 2))


neighbours = KNNImputer().fit_transform(table)
errors = {"5 neighbours": error(neighbours), "colonnade": error(completion.to_frame())}
for name, value in errors.items():
    print(f"{name:12} error {value:.4f}")
print("The noise of a reading is 0.0100.")

# %%
rows, columns = np.nonzero(~seen)
low, high = completion.interval(rows, columns, level=0.9)
missing = truth.to_numpy()[rows, columns]
coverage = np.mean((low <= missing) & (missing <= high))
print(f"{coverage:.0%} of the missing readings lie in their 90 % intervals.")

# %%
sample = int(np.flatnonzero(~seen.all(axis=1))[4])
low, high = completion.interval(sample, np.arange(120))
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
axes.fill_between(
    wavelengths, low, high, color="tab:orange", alpha=0.4, lw=0, label="90 % interval"
)
axes.plot(wavelengths, clean[sample], color="0.3", lw=1, label="true spectrum")
axes.plot(wavelengths, neighbours[sample], ":", color="tab:green", label="5 neighbours")
axes.plot(wavelengths, table.iloc[sample], "o", color="tab:blue", label="readings")
axes.set(
    xlabel="wavelength, nm",
    ylabel="absorbance",
    title=f"{names[sample]}, from {seen[sample].sum()} readings",
)
axes.legend(fontsize="small")
plt.show()
