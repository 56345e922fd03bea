"""Octavo against every server that a user would pick instead: all workloads, all peers, in turns.

python -m benchmarks.bench_peers
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.compare import demo_model
from benchmarks.contenders import Contender, octavo
from benchmarks.peers import Peer, PeerUnavailable, all_peers, variants
from benchmarks.peers.llama_server import best_flags
from benchmarks.rounds import RESULTS, Plan, begin_report, run_and_report
from benchmarks.scenarios import SteadyStreams
from benchmarks.workloads import WORKLOADS, Workload


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_peers", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    add("--peers", nargs="+", choices=list(all_peers({})), default=list(all_peers({})))
    add("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    add("--rounds", type=int, default=5)
    add("--streams", type=int, nargs="+", help="in place of each workload's own numbers")
    add("--requests-per-stream", type=int, help="in place of each workload's own number, where it has one")
    add("--max-tokens", type=int, help="new tokens of each answer, in place of each workload's own number")
    add("--variants", nargs="+", choices=list(variants()), default=list(variants()), help="of llama-server")
    add("--best-flags", type=shlex.split, default=best_flags(), help="of llama-server's variant best, quoted")
    add("--lookup-flags", type=shlex.split, default=variants()["lookup"], help="of its variant lookup, quoted")
    add("--octavo-flags", type=shlex.split, default=[], help="of octavo serve, quoted; {streams} becomes their number")
    add("--seed", type=int, default=0)
    add("--results", type=Path, default=RESULTS, help="folder of the reports")
    return parser


def chosen_workload(name: str, options: argparse.Namespace) -> Workload:
    """A workload of the table with what the options change."""
    workload = WORKLOADS[name]
    scenario = workload.scenario
    if options.requests_per_stream and isinstance(scenario, SteadyStreams):
        scenario = replace(scenario, requests_per_stream=options.requests_per_stream)
    if options.max_tokens:
        scenario = replace(scenario, request=replace(scenario.request, max_tokens=options.max_tokens))
    stream_counts = tuple(options.streams or workload.stream_counts)
    return replace(workload, title=f"({name}) {workload.title}", scenario=scenario, stream_counts=stream_counts)


def install(peers: Mapping[str, Peer]) -> tuple[dict[str, str], dict[str, str]]:
    """The versions of the peers that are here, and why the others are not."""
    versions, absent = {}, {}
    for name, peer in peers.items():
        try:
            versions[name] = peer.install()
        except PeerUnavailable as error:
            absent[name] = str(error)
            print(f"{name} does not run here: {error}", file=sys.stderr)
    return versions, absent


def main() -> None:
    """Install the peers, run the workloads, and write the report after each of them."""
    options = _parser().parse_args()
    flags = {"defaults": (), "best": tuple(options.best_flags), "lookup": tuple(options.lookup_flags)}
    known = all_peers({variant: flags[variant] for variant in options.variants})
    try:
        model = (options.model or demo_model()).resolve()
    except LookupError as error:
        sys.exit(str(error))
    versions, absent = install({name: known[name] for name in options.peers})
    report = begin_report(versions)
    report.absent = absent
    plans = []
    for workload in (chosen_workload(name, options) for name in options.workloads):
        opponents = [each for name in versions for each in known[name].contenders(model, workload)]
        contenders: list[Contender] = [octavo(model, options.octavo_flags), *opponents]
        plans.append(Plan(workload, contenders, workload.stream_counts, options.rounds, options.seed))
    run_and_report(plans, report, options.results)


if __name__ == "__main__":
    main()
