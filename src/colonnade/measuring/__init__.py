"""What to measure and how well: theory, plans, the choice of rows, acquisition, and scores of models."""
