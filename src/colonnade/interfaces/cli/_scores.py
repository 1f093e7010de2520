"""Scores and ranks of columns in words and as JSON."""

from __future__ import annotations


def lines_of(observations, table, level: float, rows: str = "questions", columns: str = "models"):
    """A line for every column that is not full, the best first."""
    full = set(observations.full_columns.tolist())
    names = _names(observations)
    for j in sorted(set(range(table.size)) - full, key=lambda j: -table.score[j]):
        yield _line(names[j], table[j], observations.shape[0], len(full), level, rows, columns)


def records_of(observations, table) -> list[dict]:
    """Scores as JSON can hold them; what is not known is None."""
    rows = [dict(zip(table.dtype.names, map(_plain, row))) for row in table.tolist()]
    return [{"model": name, **row} for name, row in zip(_names(observations), rows)]


def _names(observations) -> list[str]:
    names = observations.column_names
    return [str(j) for j in range(observations.shape[1])] if names is None else names.tolist()


def _plain(value):
    return None if value != value else value


def _line(name: str, row, m: int, n_known: int, level: float, rows: str, columns: str) -> str:
    from ..._support.arguments import shown

    if row.score != row.score:
        return f"{shown(name)}: {row.n_observed:,} of {m:,} {rows}, which determine no score."
    rank = f"; rank {row.rank} among {n_known:,} known {columns}, {row.rank_low} to {row.rank_high}"
    return (
        f"{shown(name)}: {row.n_observed:,} of {m:,} {rows}; score {row.score:.4f}, {100 * level:.3g} % interval"
        f" {row.low:.4f} to {row.high:.4f}{rank if n_known else ''}."
    )


def record_of_scores(found) -> dict:
    """What `evaluation.score` found, as JSON can hold it."""
    names = found.names
    models = records_of(found.observations, found.table)
    for one, more in zip(models, found.more_to_halve().tolist()):
        one["more_questions_to_halve"] = more
    return {
        "level": found.level,
        "models": models,
        "remarks": [{"model": names[column], "remark": words} for column, words in found.remarks],
        "tasks": {
            str(task): [
                {"model": name, **dict(zip(table.dtype.names, row))} for name, row in zip(names, table.tolist())
            ]
            for task, table in found.tasks.items()
        },
    }


def task_lines_of(found):
    """A line for every task and every model with gaps."""
    from ..._support.arguments import shown

    for task, table in found.tasks.items():
        for j in found.new:
            row = table[j]
            yield (
                f"{shown(found.names[j])} in {shown(str(task))}: score {row.score:.4f},"
                f" {100 * found.level:.3g} % interval {row.low:.4f} to {row.high:.4f}."
            )
