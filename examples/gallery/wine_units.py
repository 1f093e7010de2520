# %% [markdown]
# # Wine with mixed units
#
# 178 wines have 13 measurements in different units: alcohol in per cent, magnesium in
# mg/l, proline in the hundreds. scikit-learn ships the data. Here 20 % of the cells are
# hidden, and every column has gaps.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import colonnade as co

wine = load_wine(as_frame=True)
truth = wine.data
hidden = np.random.default_rng(0).random(truth.shape) < 0.2
table = truth.mask(hidden)
print(table.iloc[:4, :5])

# %% [markdown]
# `LowRankImputer` is a scikit-learn imputer. It learns the unit of every column, so
# nothing has to be scaled first.

# %%
imputers = {
    "mean": SimpleImputer(),
    "5 neighbours": KNNImputer(),
    "colonnade": co.LowRankImputer(),
}
errors = {}
for name, imputer in imputers.items():
    filled = imputer.fit_transform(table.to_numpy())
    off = np.where(hidden, (filled - truth.to_numpy()) / truth.std().to_numpy(), np.nan)
    errors[name] = np.sqrt(np.nanmean(off**2, axis=0))
    print(f"{name:14} error {np.sqrt(np.nanmean(off**2)):.2f} standard deviations")

# %% [markdown]
# The imputer also gives intervals, and it fits in a pipeline.

# %%
low, high = imputers["colonnade"].predict_interval(table.to_numpy(), level=0.9)
held = ((low <= truth) & (truth <= high)).to_numpy()[hidden]
coverage = held.mean()
print(f"{coverage:.0%} of the hidden values lie in their 90 % intervals.")

forest = RandomForestClassifier(50, random_state=0)
accuracy = cross_val_score(
    make_pipeline(co.LowRankImputer(), forest), table.to_numpy(), wine.target, cv=3
).mean()
print(f"Accuracy of a forest that classifies wines with gaps: {accuracy:.2f}")

# %%
figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
for k, (name, color) in enumerate(zip(errors, ("0.75", "tab:blue", "tab:orange"))):
    axes.bar(
        np.arange(13) + 0.27 * (k - 1), errors[name], 0.27, label=name, color=color
    )
axes.set_xticks(
    range(13),
    [name.split("/")[0].replace("_", " ") for name in truth.columns],
    rotation=40,
    ha="right",
)
axes.set(
    ylabel="error, standard deviations", title="Error at hidden cells, by measurement"
)
axes.margins(y=0.2)
axes.legend(ncols=3, fontsize="small", loc="upper left")
plt.show()
