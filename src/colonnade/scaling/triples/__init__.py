"""Files of (row, column, value) triples: labels numbered, sorted by column and cut into blocks."""
