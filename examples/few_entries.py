"""How often do the intervals of new columns hold, if these have far fewer entries than the table has?

Tables of 60 x 60 with four patterns and noise, half of the entries known. New columns come with 2, 5, 15 or 30 known
entries and are filled by `extend`, without a refit.

    python examples/few_entries.py
"""

import numpy as np

import colonnade as co

N_ROWS, N_OLD, N_NEW, RANK, NOISE = 60, 60, 40, 4, 0.1
COUNTS = 2, 5, 15, 30


def draw_table(rng):
    """Old and new columns, shape (60, 100): smooth curves and noise."""
    x = np.linspace(0, 1, N_ROWS)[:, None]
    patterns = np.hstack([np.cos(np.pi * k * x) / k for k in range(1, RANK + 1)])
    clean = patterns @ rng.standard_normal((RANK, N_OLD + N_NEW))
    return clean + NOISE * rng.standard_normal(clean.shape)


def main(n_tables=6):
    held = {k: [] for k in COUNTS}
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        data = draw_table(rng)
        old, new = data[:, :N_OLD], data[:, N_OLD:]
        model = co.complete(np.where(rng.random(old.shape) < 0.5, old, np.nan))
        for k in COUNTS:
            seen = rng.random(new.shape).argsort(axis=0).argsort(axis=0) < k
            completion = model.extend(np.where(seen, new, np.nan))
            rows, columns = np.nonzero(~seen)
            low, high = completion.interval(rows, N_OLD + columns, level=0.9)
            held[k].append(np.mean((low <= new[rows, columns]) & (new[rows, columns] <= high)))
    print(f"Share of missing entries of new columns in their 90 % intervals, {n_tables} tables")
    for k, shares in held.items():
        print(f"{k:3} of {N_ROWS} known: {np.mean(shares):.2f}, tables {min(shares):.2f} to {max(shares):.2f}")
    return {k: float(np.mean(shares)) for k, shares in held.items()}


if __name__ == "__main__":
    main()
