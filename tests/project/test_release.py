"""Versions, requirements and commands agree wherever they are written."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

import colonnade

ROOT = Path(__file__).parents[2]
if not (ROOT / "pyproject.toml").exists():
    pytest.skip("not in a checkout or sdist", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"matplotlib": "matplotlib-base", "duckdb": "python-duckdb", "dask": "dask-core"}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def recipe():
    return yaml.safe_load(
        Environment().from_string(text_of("recipe/meta.yaml")).render(python_min="3.11", PYTHON="python")
    )


def bounds(requirements):
    """The lower bounds by name; extras of our own have none."""
    found = (re.fullmatch(r"([\w.-]+?)(?:\[.*\])? ?>= ?([\w.]+)", one) for one in requirements)
    return {CONDA_NAMES.get(one[1], one[1]): one[2] for one in found if one}


def test_one_version():
    version = colonnade.__version__
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == version
    assert recipe()["package"]["version"] == version
    assert re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.M)[1] == version


def test_the_recipe_needs_what_the_package_needs():
    run = bounds(recipe()["requirements"]["run"])
    del run["python"]
    extras = PROJECT["optional-dependencies"]
    assert run == bounds(PROJECT["dependencies"] + extras["cli"])
    others = {
        name: bound
        for extra in ("dask", "zarr", "polars", "excel", "xarray")
        for name, bound in bounds(extras[extra]).items()
    }
    constrained = bounds(recipe()["requirements"]["run_constrained"])
    assert constrained == {k: v for k, v in others.items() if k not in run} | {
        "pandas": bounds(extras["test"])["pandas"]
    }
    assert recipe()["build"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]


def test_ci_runs_the_commands_of_contributing():
    block = re.search(r"```sh\n(.*?)```", text_of("CONTRIBUTING.md"), re.S)[1]
    script = text_of(".ci/run")
    for line in block.splitlines():
        assert f'"{line}' in script or f"'{line}" in script, line


def test_the_workflow_covers_the_declared_pythons():
    jobs = yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"]
    declared = re.findall(r":: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tested = jobs["everything"]["strategy"]["matrix"]["python"]
    assert tested[: len(declared)] == declared  # Later ones are tried before they are declared.
    assert PROJECT["requires-python"] == f">={declared[0]}"
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert ".ci/run" in commands and ".ci/oldest" in commands
    for script in re.findall(
        r"\.ci/\w+", "\n".join([*commands, text_of("docs/releasing.md"), text_of("CONTRIBUTING.md")])
    ):
        assert (ROOT / script).stat().st_mode & 0o100, script


def test_the_citation_names_the_paper():
    paper = yaml.safe_load(text_of("CITATION.cff"))["preferred-citation"]
    assert paper["title"] == "Matrix Completion from Non-Uniformly Sampled Entries" and paper["year"] == 2018
    assert [one["family-names"] for one in paper["authors"]] == ["Wan", "Yi", "Zhang"]


@pytest.mark.parametrize(
    "name", [".pre-commit-config.yaml", ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"]
)
def test_yaml_is_sound(name):
    assert yaml.safe_load(text_of(name))
