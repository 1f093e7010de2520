"""select_rows against random rows and against the QR choice of python-sensors, on the same bases.

Growth of noise is the trace of (U_O'U_O)^-1, the expected squared error of a filled column over the noise variance, and
the norm of U_O+, the worst case. The floor is the trace for the best weights 0 <= w <= 1 of the rows with sum k: no
choice of k rows is below it.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.machine import facts, json_option, record, seconds
from colonnade import select_rows

DRAWS = 50


def growth(U, rows) -> np.ndarray:
    """Trace of (U_O'U_O)^-1 and norm of U_O+."""
    values = np.linalg.svd(U[rows], compute_uv=False)
    return np.array([np.sum(values**-2.0), 1 / values[-1]])


def floor(U, k, sweeps=300) -> float:
    """The trace with the best weights: a multiplicative algorithm, and the bound that its last weights prove."""
    w = np.full(len(U), k / len(U))
    for _ in range(sweeps):
        P = np.linalg.inv((U * w[:, None]).T @ U)
        gains = ((U @ P) ** 2).sum(axis=1)
        w = capped(w * np.sqrt(gains), k)
    # tr((U'wU)^-1) is convex in w: trace(w) + gradient'(v - w) bounds it from below for every v, and the least is
    # at the k rows of the largest gain
    P = np.linalg.inv((U * w[:, None]).T @ U)
    gains = ((U @ P) ** 2).sum(axis=1)
    return float(np.trace(P) + gains @ w - np.sort(gains)[-k:].sum())


def capped(w, k) -> np.ndarray:
    """c w, at most 1 each, with sum k, by bisection over c."""
    low, high = 0.0, 1.0
    while np.minimum(high * w, 1).sum() < k:
        high *= 2
    for _ in range(60):
        c = (low + high) / 2
        low, high = (c, high) if np.minimum(c * w, 1).sum() < k else (low, c)
    return np.minimum(high * w, 1)


def bases():
    """Name and orthonormal basis."""
    rng = np.random.default_rng(0)
    for m, r in ((1000, 5), (1000, 20), (1000, 50), (10_000, 50)):
        yield f"Gaussian {m:,} x {r}", np.linalg.qr(rng.standard_normal((m, r)))[0]
    m, r = 1000, 20
    yield f"cosines {m:,} x {r}", np.linalg.qr(np.cos(np.pi * np.outer(np.arange(m) + 0.5, np.arange(r)) / m))[0]
    yield f"random signs {m:,} x {r}", np.linalg.qr(rng.choice([-1.0, 1.0], (m, r)))[0]
    yield f"spiked {m:,} x {r}", np.linalg.qr(rng.standard_normal((m, r)) * rng.pareto(1.5, m)[:, None])[0]
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("flower.jpg").mean(axis=2)
    yield "photograph 427 x 30", np.linalg.svd(photograph, full_matrices=False)[0][:, :30]


def sensors_choice(U, k):
    """The rows of python-sensors, or None if it is not installed."""
    try:
        from pysensors.optimizers import QR
    except ImportError:
        return None
    return QR().fit(U).get_sensors()[:k]


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks select_rows", description=__doc__)
    json_option(parser)
    options, recorded = parser.parse_args(arguments), {}
    print(facts())
    print(f"growth of noise: trace / worst case, of random rows the median of {DRAWS} draws; share of the random trace")
    print(f"{'basis':24} {'k':>4}  {'random':>17} {'python-sensors QR':>20} {'select_rows':>17}  share  least possible")
    for name, U in bases():
        m, r = U.shape
        for k in (r, 2 * r):
            rng = np.random.default_rng(1)
            usual = np.median([growth(U, rng.choice(m, k, replace=False)) for _ in range(DRAWS)], axis=0)
            theirs, ours = sensors_choice(U, k), growth(U, select_rows(U, k))
            recorded[f"{name.replace(',', '').replace(' ', '_')}_{k}"] = ours[0] / usual[0]
            theirs = "not installed" if theirs is None else "{:.4g} / {:.3g}".format(*growth(U, theirs))
            print(
                f"{name:24} {k:4}  {'{:.4g} / {:.3g}'.format(*usual):>17} {theirs:>20}"
                f" {'{:.4g} / {:.3g}'.format(*ours):>17}  {ours[0] / usual[0]:.3f}  {floor(U, k) / usual[0]:.3f}"
            )
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((100_000, 50)))[0]
    for k in (50, 100):
        print(f"100,000 x 50, k = {k}: {seconds(lambda: select_rows(U, k)):.1f} s")  # noqa: B023
    record(options.json, "select_rows", recorded)
    return 0
