"""What people touch: the command line, the HTML report, plots, summaries and scikit-learn imputers."""
