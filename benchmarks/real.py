"""complete(M) without settings on real matrices, beside what else fills them: errors, times, and intervals that hold.

Every .npz file of a folder that has a matrix X (a column for each object, NaN for natural gaps) is a set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

import colonnade as co
from benchmarks.coverage import LEVELS, Coverage, coverage_of
from benchmarks.imputers import PRIOR, RIVALS
from benchmarks.machine import count, facts, json_option, record
from benchmarks.real_data import Problem, problems, read_sets

OURS = "complete"
ELAPSED, PROCESSOR = 0, 1


@dataclass
class Results:
    """Of one problem over the seeds; lists of as many figures as seeds, by method; times are (elapsed, processor)."""

    errors: dict = field(default_factory=lambda: defaultdict(list))
    times: dict = field(default_factory=lambda: defaultdict(list))
    settings: dict = field(default_factory=dict)
    tuning: dict = field(default_factory=dict)
    coverage: list[Coverage] = field(default_factory=list)
    fit: str = ""

    def error(self, method) -> float:
        return float(np.mean(self.errors[method]))

    def seconds(self, method, clock=ELAPSED) -> float:
        """Of a fit, and of the tuning before it."""
        return float(np.mean([times[clock] for times in self.times[method]])) + self.tuned(method, clock)

    def tuned(self, method, clock=ELAPSED) -> float:
        return self.tuning.get(method, (0.0, 0.0))[clock]


def timed(work):
    """What a work returns, and its times: elapsed, and of all threads of the processor."""
    elapsed, processor = time.perf_counter(), time.process_time()
    answer = work()
    return answer, (time.perf_counter() - elapsed, time.process_time() - processor)


def run_ours(problem: Problem, results: Results) -> None:
    co.complete(problem.known)  # warm
    completion, times = timed(lambda: co.complete(problem.known))
    results.times[OURS].append(times)
    results.errors[OURS].append(problem.error(completion.to_dense()))
    results.coverage.append(coverage_of(problem, completion))
    results.fit = results.fit or completion.choices.get("fit", "")


def run_rival(name: str, problem: Problem, results: Results, seed: int) -> None:
    """Tuned on the first seed, and fitted with those settings to all."""
    rival, known = RIVALS[name], problem.known.astype(np.float64)
    if name not in results.settings:
        results.settings[name], times = timed(lambda: rival.tune(known, seed))
        if rival.is_tuned:
            results.tuning[name] = times
    filled, times = timed(lambda: rival.fit(known, seed, *results.settings[name]))
    results.times[name].append(times)
    results.errors[name].append(problem.error(filled))


def run(folder, names, rivals, n_seeds: int, report) -> dict[str, Results]:
    found = defaultdict(Results)
    for name, (X, labels) in read_sets(folder, names).items():
        for seed in range(n_seeds):
            for problem in problems(name, X, labels, seed):
                run_ours(problem, found[problem.name])
                for rival in rivals:
                    run_rival(rival, problem, found[problem.name], seed)
                report(f"{problem.name}, seed {seed}")
    return found


def print_table(title: str, found, methods, figure, more=()) -> None:
    """A line for each problem, a column for each method and for each of `more`: (heading, function of the results)."""
    width = max(map(len, found)) + 1
    print(f"\n{title}\n" + " " * width + "".join(f"{name:>11}" for name in [*methods, *(head for head, _ in more)]))
    for problem, results in found.items():
        figures = [f"{figure(results, method):11.4g}" for method in methods]
        print(f"{problem:{width}}" + "".join(figures) + "".join(f"{value(results):>11}" for _, value in more))


def ratio_to_best(results: Results, rivals) -> str:
    best = min((r for r in rivals if r != PRIOR), key=results.error, default=None)
    return "" if best is None else f"{results.error(OURS) / results.error(best):.3f}"


def print_coverage(found) -> None:
    width = max(map(len, found)) + 1
    heads = "".join(f"{level:>17.0%}" for level in LEVELS)
    print(
        "\nIntervals: per cent of hidden entries inside; mean width over that of a constant width with as many inside"
    )
    print(" " * width + heads)
    for problem, results in found.items():
        shares = np.mean([c.shares for c in results.coverage], axis=0)
        widths = np.mean([c.widths for c in results.coverage], axis=0)
        print(f"{problem:{width}}" + "".join(f"{100 * s:9.1f} {w:7.3f}" for s, w in zip(shares, widths)))


def print_times(found, rivals) -> None:
    methods, tuned = [OURS, *rivals], [name for name in rivals if RIVALS[name].is_tuned]
    for clock, title in ((ELAPSED, "Seconds"), (PROCESSOR, "Processor seconds, of all threads")):
        ratio = lambda r: f"{r.seconds(OURS, clock) / r.seconds('cmfrec', clock):.4f}"  # noqa: B023, E731
        more = [("/cmfrec", ratio)] if "cmfrec" in rivals else []
        print_table(f"{title}, warm, tuning included", found, methods, lambda r, m: r.seconds(m, clock), more)  # noqa: B023
    if tuned:
        print_table("Seconds of tuning, done for the first seed only", found, tuned, Results.tuned)


def print_results(found, rivals, n_seeds) -> None:
    ratios = [("/best", lambda r: ratio_to_best(r, rivals))]
    if PRIOR in rivals:
        ratios.append((f"/{PRIOR}", lambda r: f"{r.error(OURS) / r.error(PRIOR):.3f}"))
    title = f"Errors, means of {n_seeds} seeds; complete over the best of the rivals, and over the {PRIOR}"
    print_table(title, found, [OURS, *rivals], Results.error, ratios)
    print_times(found, rivals)
    print_coverage(found)
    print("\nSettings that were tuned, and what complete says of the fit, first seed")
    for problem, results in found.items():
        settings = "; ".join(f"{name} {settings}" for name, settings in results.settings.items() if settings)
        print(f"{problem}: {settings}{'; ' if settings else ''}{results.fit}")


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real", description=__doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with .npz files")
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--sets", type=lambda text: text.split(","), help="names of files, without .npz")
    parser.add_argument("--rivals", type=lambda text: [name for name in text.split(",") if name], default=[*RIVALS])
    json_option(parser)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rivals if name not in RIVALS]
    if unknown:
        parser.error(f"no rival {', '.join(unknown)}; there are {', '.join(RIVALS)}")
    print(facts())
    for name in options.rivals:
        absent = "" if RIVALS[name].is_here else f" -- not run: {RIVALS[name].package} is not installed"
        print(f"{name:10} {RIVALS[name].remark}{absent}")
    rivals = [name for name in options.rivals if RIVALS[name].is_here]
    found = run(options.data, options.sets, rivals, options.seeds, lambda text: print(text, file=sys.stderr))
    print_results(found, rivals, options.seeds)
    ratios = sorted(float(one) for one in (ratio_to_best(results, rivals) for results in found.values()) if one)
    if ratios and not options.sets:
        record(options.json, "real", {"problems": len(ratios), "least": ratios[0], "largest": ratios[-1]})
    return 0
