"""What the posterior of the factor model says of single entries, of means and of whole columns."""
