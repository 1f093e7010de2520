"""The learner for tables with complete columns: rank, centre, shrinkage and refinement by validation columns."""
