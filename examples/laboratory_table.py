"""Gaps in a laboratory table.

300 samples, absorbance at 120 wavelengths: mixtures of five substances, a drifting baseline and noise. 60 samples were
measured at every wavelength. For the others a cheap instrument gave 15 wavelengths, and a reading failed now and then.

    python examples/laboratory_table.py
"""

import time

import numpy as np
import pandas as pd
from sklearn.impute import KNNImputer, SimpleImputer

import colonnade as co

N_SAMPLES, N_COMPLETE = 300, 60
WAVELENGTHS = np.arange(400, 1000, 5)


def draw_spectra(rng):
    """A data frame with samples as rows and wavelengths as columns."""
    substances = [(450, 30), (520, 45), (610, 25), (700, 60), (830, 40)]
    bands = np.array([np.exp(-0.5 * ((WAVELENGTHS - center) / width) ** 2) for center, width in substances])
    amounts = rng.gamma(2.0, 0.5, (N_SAMPLES, len(substances)))
    drift = np.outer(rng.normal(0, 0.1, N_SAMPLES), (WAVELENGTHS - 700) / 300)
    spectra = amounts @ bands + drift + 0.01 * rng.standard_normal((N_SAMPLES, WAVELENGTHS.size))
    index = [f"sample {i:03d}" for i in range(N_SAMPLES)]
    return pd.DataFrame(spectra, index=index, columns=[f"{w} nm" for w in WAVELENGTHS])


def with_gaps(rng, spectra):
    """NaN but for the 15 wavelengths of the cheap instrument, of which a tenth failed."""
    seen = np.zeros(spectra.shape, bool)
    seen[:, 4::8] = rng.random((N_SAMPLES, 15)) < 0.9
    seen[rng.choice(N_SAMPLES, N_COMPLETE, replace=False)] = True
    return spectra.where(seen)


def main():
    rng = np.random.default_rng(0)
    spectra = draw_spectra(rng)
    table = with_gaps(rng, spectra)
    gaps = table.isna().to_numpy()
    print(f"{gaps.mean():.0%} of a table of {table.shape[0]} samples x {table.shape[1]} wavelengths are missing.")
    imputers = {
        "CompleteRowsImputer": co.CompleteRowsImputer(),
        "scikit-learn KNNImputer": KNNImputer(),
        "scikit-learn SimpleImputer": SimpleImputer(),
    }
    errors = {}
    for name, imputer in imputers.items():
        started = time.perf_counter()
        filled = imputer.set_output(transform="pandas").fit_transform(table)
        errors[name] = np.sqrt(np.mean((filled.to_numpy() - spectra.to_numpy())[gaps] ** 2))
        print(f"  {name:28} error {errors[name]:.4f}   {time.perf_counter() - started:.2f} s")
    print("The noise of a measurement is 0.0100: no method can be nearer on average.")

    # The same with intervals: in the core the things to be filled are columns, so the table is turned.
    completion = co.complete(table.T)
    row, column = np.nonzero(gaps.T)
    low, high = completion.interval(row, column)
    truth = spectra.to_numpy().T[row, column]
    errors["coverage"] = np.mean((low <= truth) & (truth <= high))
    print(f"90 % intervals held {errors['coverage']:.1%} of the missing measurements.")
    print(completion.to_frame().T.iloc[:3, :4].round(3))
    return errors


if __name__ == "__main__":
    main()
