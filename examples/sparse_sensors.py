"""A field from a few sensors (gappy POD).

Waves run through a channel of 60 x 30 points; 80 moments were recorded everywhere. Later only 16 sensors are read, with
noise. Which places should they have, and how good is the field that is filled in?

    python examples/sparse_sensors.py
"""

import numpy as np

import colonnade as co

SHAPE, N_RECORDED, N_LATER, N_SENSORS, NOISE = (60, 30), 80, 120, 16, 0.05


def draw_field(rng, n_moments):
    """Snapshots as columns, shape (1800, n_moments): waves of several lengths, each with a phase and strength."""
    x, y = np.meshgrid(np.linspace(0, 1, SHAPE[0]), np.linspace(0, 1, SHAPE[1]), indexing="ij")
    t = rng.uniform(0, 100, n_moments)
    field = 0
    for k, strength in ((1, 1.0), (2, 0.6), (3, 0.4), (4, 0.2), (6, 0.1)):
        profile = np.sin(np.pi * k * y) + 0.5 * np.cos(2 * np.pi * k * x) * np.sin(np.pi * y)
        phase = 2 * np.pi * k * (x[..., None] - 0.3 * k**0.5 * t)
        field = field + strength * profile[..., None] * np.cos(phase)
    return field.reshape(-1, n_moments)


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def read_at(rows, later, noise):
    """What is known of the later moments: NaN but at the sensors."""
    known = np.full(later.shape, np.nan)
    known[rows] = (later + noise)[rows]
    return known


def main():
    rng = np.random.default_rng(0)
    truth = draw_field(rng, N_RECORDED + N_LATER)
    noise = NOISE * rng.standard_normal(truth.shape)
    recorded, later = truth[:, :N_RECORDED] + noise[:, :N_RECORDED], truth[:, N_RECORDED:]

    # The places, from the recorded moments; 10 directions hold these waves but for the noise.
    space = co.fit_column_space(recorded, rank=10)
    places = {
        "random places": rng.choice(truth.shape[0], N_SENSORS, replace=False),
        "chosen places": co.select_rows(space, N_SENSORS),
    }
    results = {}
    print(
        f"{N_SENSORS} sensors for {truth.shape[0]:,} points, noise {NOISE / truth.std():.0%} of the field's deviation"
    )
    for name, rows in places.items():
        data = np.hstack([recorded, read_at(rows, later, noise[:, N_RECORDED:])])
        for method, options in (
            ("gappy POD (least squares)", {"rank": 10, "center": False, "shrinkage": 0, "refine": 0}),
            ("with the prior (automatic)", {}),
        ):
            completion = co.complete(data, **options)
            found = completion.columns(np.arange(N_RECORDED, data.shape[1]))
            results[name, method] = relative(found, later)
            print(f"  {name}, {method:28} relative error {results[name, method]:.3f}")
    point = np.delete(np.arange(truth.shape[0]), places["chosen places"])[::20]
    rows, columns = np.meshgrid(point, np.arange(N_RECORDED, data.shape[1]), indexing="ij")
    low, high = completion.interval(rows, columns)
    measured = (truth + noise)[rows, columns]
    results["coverage"] = np.mean((low <= measured) & (measured <= high))
    print(f"90 % intervals held {results['coverage']:.1%} of {measured.size:,} measurements elsewhere.")
    return results


if __name__ == "__main__":
    main()
