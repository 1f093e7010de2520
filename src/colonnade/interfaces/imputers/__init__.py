"""Imputers with the interface of scikit-learn."""
