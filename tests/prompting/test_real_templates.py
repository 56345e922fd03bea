"""What is told of the templates of real models, all that come with llama.cpp's sources."""

import re
import subprocess
from collections.abc import Mapping
from itertools import takewhile

import pytest
from llama_cpp_templates import templates
from prompting_builders import split, user

from octavo.core.channels import Channel, ChannelFormat
from octavo.core.messages import Message, Role
from octavo.errors import TemplateError
from octavo.prompting import ChatTemplate
from octavo.prompting.reasoning import channel_format, family_of

# Template; what begins its reasoning; the channel of an answer by default, with thinking on, with thinking off.
# Four of them are for requests with tools alone.
TABLE = """
Apertus-8B-Instruct                            <|inner_prefix|>              answer     answer     answer
Apriel-1.6-15b-Thinker-fixed                   Here are my reasoning steps:  reasoning  reasoning  reasoning
Bielik-11B-v3.0-Instruct                       <think>                       answer     reasoning  answer
ByteDance-Seed-OSS                             <seed:think>                  answer     answer     answer
Cohere2MoE                                     <|START_THINKING|>            reasoning  reasoning  reasoning
CohereForAI-c4ai-command-r-plus-tool_use       -                             refused    refused    refused
CohereForAI-c4ai-command-r7b-12-2024-tool_use  <|START_THINKING|>            answer     answer     answer
GLM-4.6                                        <think>                       answer     answer     answer
GLM-4.7-Flash                                  <think>                       reasoning  reasoning  answer
GigaChat3-10B-A1.8B                            -                             answer     answer     answer
GigaChat3.1-10B-A1.8B                          -                             answer     answer     answer
HuggingFaceTB-SmolLM3-3B                       <think>                       answer     answer     answer
Kimi-K2-Instruct                               -                             answer     answer     answer
Kimi-K2-Thinking                               <think>                       answer     answer     answer
Kimi-K3                                        <|open|>think<|sep|>          reasoning  reasoning  answer
LFM2-8B-A1B                                    -                             answer     answer     answer
LFM2.5-8B-A1B                                  <think>                       answer     answer     answer
LFM2.5-Instruct                                <think>                       answer     answer     answer
MiMo-VL                                        -                             answer     answer     answer
MiniMax-M1                                     -                             answer     answer     answer
MiniMax-M2                                     <think>                       reasoning  reasoning  reasoning
MiniMax-M3                                     <mm:think>                    answer     answer     answer
Mistral-Small-3.2-24B-Instruct-2506            -                             answer     answer     answer
NVIDIA-Nemotron-3-Nano-30B-A3B-BF16            <think>                       reasoning  reasoning  answer
NVIDIA-Nemotron-Nano-v2                        <think>                       reasoning  reasoning  reasoning
NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use  -                             refused    refused    refused
NousResearch-Hermes-3-Llama-3.1-8B-tool_use    -                             refused    refused    refused
Qwen-QwQ-32B                                   <think>                       answer     reasoning  answer
Qwen-Qwen2.5-7B-Instruct                       -                             answer     answer     answer
Qwen-Qwen3-0.6B                                <think>                       answer     answer     answer
Qwen3-Coder                                    -                             answer     answer     answer
Qwen3.5-4B                                     <think>                       reasoning  reasoning  answer
Reka-Edge                                      <think>                       answer     reasoning  answer
Spark2.5                                       <think>                       reasoning  reasoning  answer
StepFun3.5-Flash                               <think>                       reasoning  reasoning  reasoning
deepseek-ai-DeepSeek-R1-Distill-Llama-8B       <think>                       reasoning  reasoning  reasoning
deepseek-ai-DeepSeek-R1-Distill-Qwen-32B       <think>                       answer     reasoning  answer
deepseek-ai-DeepSeek-V3.1                      <think>                       answer     reasoning  answer
deepseek-ai-DeepSeek-V3.2                      <think>                       answer     reasoning  answer
deepseek-ai-DeepSeek-V4-Flash-0731             <think>                       answer     reasoning  answer
deepseek-ai-DeepSeek-V4                        <think>                       answer     reasoning  answer
fireworks-ai-llama-3-firefunction-v2           -                             refused    refused    refused
google-gemma-2-2b-it                           -                             answer     answer     answer
google-gemma-4-31B-it-interleaved              <|channel>thought             answer     answer     answer
google-gemma-4-31B-it                          <|channel>thought             answer     answer     answer
ibm-granite-granite-3.3-2B-Instruct            <think>                       answer     answer     answer
ibm-granite-granite-4.0                        -                             answer     answer     answer
ibm-granite-granite-4.1                        -                             answer     answer     answer
inclusionai-ling-3.0-flash                     <think>                       reasoning  reasoning  answer
llama-cpp-deepseek-r1                          <think>                       reasoning  reasoning  reasoning
llama-cpp-rwkv-world                           <think>                       answer     reasoning  answer
meetkai-functionary-medium-v3.1                -                             answer     answer     answer
meetkai-functionary-medium-v3.2                -                             answer     answer     answer
meta-llama-Llama-3.1-8B-Instruct               -                             answer     answer     answer
meta-llama-Llama-3.2-3B-Instruct               -                             answer     answer     answer
meta-llama-Llama-3.3-70B-Instruct              -                             answer     answer     answer
microsoft-Phi-3.5-mini-instruct                -                             answer     answer     answer
mistralai-Ministral-3-14B-Reasoning-2512       [THINK]                       answer     answer     answer
mistralai-Mistral-Nemo-Instruct-2407           -                             answer     answer     answer
moonshotai-Kimi-K2                             -                             answer     answer     answer
muse-glimmer                                   to=self<|message|>            hidden     hidden     hidden
openai-gpt-oss-120b                            <|channel|>analysis<|message|>  hidden     hidden     hidden
openbmb-MiniCPM5-1B                            <think>                       answer     reasoning  answer
poolside-Laguna-S-2.1                          <think>                       reasoning  reasoning  answer
poolside-Laguna-XS-2.1                         <think>                       answer     reasoning  answer
poolside-Laguna-XS.2                           <think>                       answer     reasoning  answer
tencent-Hy3                                    <think:opensource>            answer     answer     answer
unsloth-Apriel-1.5                             Here are my reasoning steps:  answer     answer     answer
unsloth-mistral-Devstral-Small-2507            -                             answer     answer     answer
upstage-Solar-Open-100B                        <|think|>                     hidden     hidden     hidden
"""
EXPECTED = {row[0]: tuple(row[1:]) for row in (re.split(r" {2,}", line) for line in TABLE.split("\n") if line)}
THINKING = {
    "default": {},
    "on": {"enable_thinking": True, "thinking": True},
    "off": {"enable_thinking": False, "thinking": False},
}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    try:
        return templates()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the sources of llama.cpp cannot be fetched: {error.stderr.decode()[-300:]}")


def initial(template: ChatTemplate, variables: Mapping[str, object]) -> str:
    try:
        prompt = template.render([user("Hi")], bos_token="<s>", eos_token="</s>", variables=variables)
    except TemplateError:
        return "refused"
    return channel_format(template, prompt).initial.value


def described(source: str) -> tuple[str, ...]:
    template = ChatTemplate(source)
    starts = [text for text, channel in family_of(template).markers if channel is Channel.REASONING]
    return (starts[0] if starts else "-", *(initial(template, variables) for variables in THINKING.values()))


def shown_turn(template: ChatTemplate) -> tuple[ChannelFormat, str]:
    """What the template writes for a turn with a reasoning, and the format at the place where the turn begins."""
    ask, turn = user("Hi"), Message(Role.ASSISTANT, "the answer", reasoning="the reasoning")
    prompt = template.render([ask], bos_token="<s>", eos_token="</s>")
    shown = template.render([ask, turn], bos_token="<s>", eos_token="</s>", variables={"add_generation_prompt": False})
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, shown, strict=False)))
    start = re.sub(r"[<\[][^>\]]*\Z", "", common)  # to where no marker is cut in two
    return channel_format(template, start), shown[len(start) :]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_template_s_markers_and_the_channel_of_its_answers_are_told(sources: dict[str, str]) -> None:
    assert {name: described(source) for name, source in sources.items()} == EXPECTED


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_a_template_shows_as_reasoning_and_answer_is_told_apart(sources: dict[str, str]) -> None:
    told = {}
    for name, source in sources.items():
        if EXPECTED[name][1] != "refused":
            channels, turn = shown_turn(ChatTemplate(source))
            is_opened = channels.initial is Channel.REASONING or EXPECTED[name][0] in turn
            if is_opened and "the reasoning" in turn:
                reasoning, answer = split(channels, turn)
                told[name] = (reasoning, answer[: len("the answer")])
    assert told == dict.fromkeys(told, ("the reasoning", "the answer"))
    assert len(told) >= 23
