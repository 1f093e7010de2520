"""The factor model of a table with gaps anywhere: kernels, variational sweeps, and the choice of its settings."""
