"""What a step costs, by what steps have cost, on an invented clock."""

import numpy as np
import pytest

from engine.builders import runner_limits, scripted_runner, sequence
from octavo.engine.batching.composer import MAX_STALL, MIN_CHUNK, MixedSteps
from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.batching.step_costs import SIZES, MeasuredSteps
from octavo.engine.runners.scripted import ScriptedRunner

SECONDS_PER_STEP, SECONDS_PER_TOKEN = 0.010, 0.002


class SlowRunner(ScriptedRunner):
    """Whose clock goes on by what its steps would take."""

    def __init__(self) -> None:
        made = scripted_runner(max_batch_tokens=64, max_logits=64, context_length=128)
        super().__init__(made.limits, lambda tokens: np.zeros(made.limits.vocabulary_size, np.float32))
        self.now = 0.0

    def forward(self, batch: ForwardBatch) -> np.ndarray:
        self.now += SECONDS_PER_STEP + SECONDS_PER_TOKEN * len(batch.tokens)
        return super().forward(batch)


def seconds(costs: MeasuredSteps, num_tokens: int) -> float:
    return float(costs.seconds(np.array([num_tokens]))[0])


def test_what_was_measured_at_start_holds_for_steps_of_other_sizes() -> None:
    runner = SlowRunner()
    costs = MeasuredSteps.measure(runner, lambda: runner.now)
    for num_tokens in (1, 5, 64, 300):
        assert seconds(costs, num_tokens) == pytest.approx(SECONDS_PER_STEP + SECONDS_PER_TOKEN * num_tokens)
    assert costs.max_tokens(0.110) == 50
    runner.forward(ForwardBatch.build([(0, 0, np.array([1], np.int32), 1)]))  # nothing was left in the slot


def test_steps_correct_what_is_expected_of_their_size_and_of_larger_ones_more_than_of_smaller_ones() -> None:
    costs = MeasuredSteps(0.5 + SIZES * 0.1)
    for _ in range(20):
        costs.observe(5, 2.0)
    assert seconds(costs, 5) == pytest.approx(2.0, abs=0.05)
    assert seconds(costs, 256) - seconds(costs, 6) == pytest.approx(25.0), "what the tokens in between take"
    assert 0.6 < seconds(costs, 1) < 0.9


def test_each_graph_more_costs_what_a_step_does_but_for_its_token() -> None:
    costs = MeasuredSteps(SECONDS_PER_STEP + SECONDS_PER_TOKEN * SIZES)
    expected = [SECONDS_PER_STEP + 20 * SECONDS_PER_TOKEN, 3 * SECONDS_PER_STEP + 20 * SECONDS_PER_TOKEN]
    assert costs.seconds(np.array([20, 20]), np.array([1, 3])).tolist() == pytest.approx(expected)
    costs.observe(20, expected[1], num_graphs=3)
    assert seconds(costs, 20) == pytest.approx(expected[0]), "it took as long as expected"


def test_a_step_that_was_interrupted_is_not_taken_at_its_word() -> None:
    costs = MeasuredSteps(np.ones(len(SIZES)))
    costs.observe(8, 1000.0)
    assert seconds(costs, 8) < 1.5


def test_prompts_take_no_longer_steps_than_others_may_be_made_to_wait() -> None:
    costs = MeasuredSteps(SIZES * 0.001)
    composer = MixedSteps(runner_limits(max_batch_tokens=2048), costs)
    long, writing = sequence((1,) * 5000), sequence((2,))
    assert [item.num_tokens for item in composer.compose([long])] == [2048]
    assert [item.num_tokens for item in composer.compose([long, writing])] == [1, MAX_STALL / 0.001 - 1]
    slow = MixedSteps(runner_limits(max_batch_tokens=2048), MeasuredSteps(SIZES * 1.0))
    assert [item.num_tokens for item in slow.compose([long, writing])] == [1, MIN_CHUNK]
