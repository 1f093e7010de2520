"""Results on the disk: saved completions, blocks of columns, and the records of a run that can be continued."""
