"""Small logs that look like those of lm-evaluation-harness, Inspect, HELM and Every Eval Ever."""

import json
import struct
import zipfile
import zlib

DATE = "2026-01-01T10-00-00.000000"


def sample(number, filter="none", **metrics):
    """A line of lm-evaluation-harness since 0.4.7."""
    return {
        "doc_id": number,
        "doc": {"question": f"q{number}"},
        "target": "0",
        "arguments": {"gen_args_0": {"arg_0": "Q:", "arg_1": {"until": ["\n"]}}},
        "resps": [["x"]],
        "filtered_resps": ["x"],
        "filter": filter,
        "metrics": list(metrics),
        "doc_hash": f"h{number}",
        "prompt_hash": f"p{number}",
        "target_hash": "t",
        **metrics,
    }


def old_sample(number, **metrics):
    """A line before 0.4.7: neither the filter nor the metrics are named."""
    return {key: value for key, value in sample(number, **metrics).items() if key not in ("filter", "metrics")}


def write_samples(folder, task, lines, date=DATE):
    path = folder / f"samples_{task}_{date}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def write_results(folder, model, tasks=("t",), date=DATE, *, args=None, shots=0, filters=(), losses=(), **more):
    """The results file beside the samples of a run; `args` are further arguments of the model."""
    config = {"filter_list": [{"name": name, "filter": []} for name in filters]} if filters else {}
    content = {
        "results": {task: {} for task in tasks},
        "configs": {task: {"task": task, "num_fewshot": shots, **config} for task in tasks},
        "n-shot": dict.fromkeys(tasks, shots),
        "higher_is_better": {task: dict.fromkeys(losses, False) for task in tasks},
        "config": {"model": "hf", "model_args": ",".join([f"pretrained={model}", *(args or [])])},
        "model_source": "hf",
        "model_name": model,
        **more,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"results_{date}.json").write_text(json.dumps(content, indent=2))


def inspect_log(
    model, scores, *, task="inspect_evals/sums", created="2026-01-01T10:00:00+02:00", status="success", **eval
):
    """A log of Inspect; `scores` are lists of (id, epoch, {scorer: value})."""
    samples = [
        {
            "id": name,
            "epoch": epoch,
            "input": f"What is {name}?",
            "target": "A",
            "scores": {scorer: {"value": value, "answer": "A"} for scorer, value in given.items()},
            "events": [{"event": "sample_init"}],
        }
        for name, epoch, given in scores
    ]
    spec = {"created": created, "task": task, "task_args_passed": {}, "model": model, "model_args": {}, **eval}
    return {"version": 2, "status": status, "eval": spec, "plan": {"config": {}}, "samples": samples}


def write_eval(path, log, *, method="deflate", finished=True):
    """The same log as an .eval file: a zip with a header, summaries and samples."""
    header = {key: value for key, value in log.items() if key != "samples"}
    summaries = [{k: v for k, v in one.items() if k != "events"} for one in log["samples"]]
    members = {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in log["samples"]}
    if finished:
        members |= {"summaries.json": summaries, "header.json": header}
    else:
        members |= {f"_journal/summaries/{k + 1}.json": [one] for k, one in enumerate(summaries)}
        members["_journal/start.json"] = header
    texts = {name: json.dumps(content).encode() for name, content in members.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    if method == "zstandard":
        path.write_bytes(zstandard_zip(texts))
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(name, text)


def zstandard_zip(texts):
    """A zip file whose members are compressed by method 93, in two frames each."""
    import pyarrow

    codec, body, directory = pyarrow.Codec("zstd"), b"", b""
    for name, text in texts.items():
        half = len(text) // 2
        packed = b"".join(codec.compress(part, asbytes=True) for part in (text[:half], text[half:]))
        common = struct.pack("<5H3L2H", 63, 0, 93, 0, 33, zlib.crc32(text), len(packed), len(text), len(name), 0)
        offset = len(body)
        body += b"PK\x03\x04" + common + name.encode() + packed
        directory += (
            b"PK\x01\x02" + struct.pack("<H", 63) + common + struct.pack("<3H2L", 0, 0, 0, 0, offset) + name.encode()
        )
    end = struct.pack("<4H2LH", 0, 0, len(texts), len(texts), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def helm_instance(name, trial=0, perturbation=None, **stats):
    """An instance of HELM with the bookkeeping that stands around its scores."""
    numbers = {"num_references": 4, "inference_runtime": 0.7, **stats}
    listed = [
        {"name": {"name": key, "split": "test"}, "count": 1, "sum": value, "min": value, "max": value, "mean": value}
        for key, value in numbers.items()
    ]
    listed.append({"name": {"name": "training_co2_cost", "split": "test"}, "count": 0, "sum": 0})
    instance = {"instance_id": name, "train_trial_index": trial, "stats": listed}
    return instance if perturbation is None else {**instance, "perturbation": {"name": perturbation}}


def write_helm(folder, model, instances, *, task="mmlu:subject=anatomy", shots=5, spec=True):
    folder = folder / f"{task},model={model.replace('/', '_')}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "per_instance_stats.json").write_text(json.dumps(instances, indent=2))
    if spec:
        adapter = {"method": "multiple_choice_joint", "model": model, "max_train_instances": shots, "temperature": 0.0}
        (folder / "run_spec.json").write_text(json.dumps({"name": folder.name, "adapter_spec": adapter}))
    return folder / "per_instance_stats.json"


def instance(model, name, score, *, evaluation="sums", result=None, time=1, reference="4", metadata=None, source="lab"):
    """A line of the instance-level schema of Every Eval Ever 0.3.0."""
    record = {
        "schema_version": "0.3.0",
        "evaluation_id": f"{source}/{model.replace('/', '_')}/{time}",
        "model_id": model,
        "evaluation_name": evaluation,
        "evaluation_result_id": result,
        "sample_id": name,
        "sample_hash": f"{model}-{name}",
        "interaction_type": "single_turn",
        "input": {"raw": "2 + 2", "reference": [reference]},
        "output": {"raw": ["4"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1},
        "metadata": metadata,
    }
    return {key: value for key, value in record.items() if value is not None}


def write_instances(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def write_log(folder, model, task, lines, date="2026-01-01T10-00-00.000000"):
    path = folder / model / f"samples_{task}_{date}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path
