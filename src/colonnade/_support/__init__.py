"""Tools without mathematics: argument checks, threads, progress, atomic writing, ownership of files, provenance."""
