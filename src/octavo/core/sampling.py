"""How the next token is drawn from the model's distribution."""

from dataclasses import dataclass

BAN_BIAS = -100.0
"""A logit bias of this value excludes the token."""
FORCE_BIAS = 100.0
"""A logit bias of this value excludes every token that does not have it too."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one sequence, validated and with every default chosen.

    The order of application is: logit_bias, a request's min_tokens and grammar, penalties, temperature, top_k, min_p,
    top_p, draw.

    temperature: ≥ 0; 0 is greedy, and then nothing after the penalties has an effect.
    top_k: keep the k most probable tokens; 0 is off.
    min_p: keep tokens with p ≥ min_p × p_max (arXiv 2407.01082); 0 is off.
    top_p: keep the smallest set of most probable tokens whose probability reaches top_p, the crossing token
        included (arXiv 1904.09751); 1 is off.
    frequency_penalty, presence_penalty: subtracted from the logits of generated tokens, per occurrence and once
        (OpenAI's formula).
    repetition_penalty: divides positive and multiplies negative logits of every token of prompt and output
        (CTRL, arXiv 1909.05858); 1 is off.
    logit_bias: (token id, bias) pairs, added to the logits first.
    seed: key of the sequence's own random stream, 0 ≤ seed < 2**64.
    """

    temperature: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    top_p: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0 or self.top_p == 0.0 or self.top_k == 1

    @property
    def has_penalties(self) -> bool:
        return self.frequency_penalty != 0.0 or self.presence_penalty != 0.0 or self.repetition_penalty != 1.0
