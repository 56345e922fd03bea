"""OpenVINO GenAI's continuous batching without HTTP. It runs in OpenVINO's own environment, so it imports no Octavo.

python run_openvino.py JOB.json
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import openvino_genai as genai  # type: ignore[import-not-found]  # only in the peer's environment
from openvino import Tensor  # type: ignore[import-not-found]

CACHE_GIB = 2


def main(job: dict[str, Any]) -> dict[str, float]:
    """Compute all prompts, as many at a time as the job has streams. Time is that of the prompts alone."""
    scheduler = genai.SchedulerConfig()
    scheduler.max_num_seqs = job["num_streams"]
    scheduler.cache_size = CACHE_GIB
    pipeline = genai.ContinuousBatchingPipeline(job["model"], scheduler, "CPU")
    _generate(pipeline, job, job["warm_up"])
    started = time.perf_counter()
    num_tokens = _generate(pipeline, job, job["prompts"])
    return {"wall_seconds": time.perf_counter() - started, "completion_tokens": num_tokens}


def _generate(pipeline: Any, job: dict[str, Any], prompts: list[list[int]]) -> int:
    """Returns the number of generated tokens."""
    config = genai.GenerationConfig()
    config.max_new_tokens = job["max_tokens"]
    config.ignore_eos = True
    config.do_sample = job["temperature"] > 0
    if config.do_sample:
        config.temperature, config.top_p = job["temperature"], job["top_p"]
    tensors = [Tensor(np.array([prompt], dtype=np.int64)) for prompt in prompts]
    results = pipeline.generate(tensors, [config] * len(tensors))
    return sum(len(tokens) for result in results for tokens in result.m_generation_ids)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
