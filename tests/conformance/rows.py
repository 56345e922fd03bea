"""What users of other servers reported about our fields, as data: public bug reports, in our own words.

The numbers are those of the list of reports that this project keeps; they are stable names and have gaps.
"""

from dataclasses import dataclass

STOP = "Stop strings"
STOP_LOGPROBS = "Stop strings and log-probabilities"
BYTES = "Bytes and UTF-8"
ECHO = "Echo and log-probabilities of prompts"
PROMPTS = "Prompt shapes, order, n, best_of"
SAMPLING = "logit_bias, seed, edges of sampling"
USAGE = "Usage in streams"
TOOLS = "Tools"
STRUCTURED = "Structured output"
VALIDATION = "Validation, null, unknown fields, messages, context"
ENDINGS = "Disconnect, special tokens, suffix, reasoning"
SECOND = "Added on a second pass"

REPOSITORIES = {
    "LocalAI": "mudler/LocalAI",
    "TGI": "huggingface/text-generation-inference",
    "TensorRT-LLM": "NVIDIA/TensorRT-LLM",
    "ds4": "antirez/ds4",
    "dynamo": "ai-dynamo/dynamo",
    "ik_llama.cpp": "ikawrakow/ik_llama.cpp",
    "instructor": "567-labs/instructor",
    "litellm": "BerriAI/litellm",
    "llama-cpp-python": "abetlen/llama-cpp-python",
    "llama.cpp": "ggml-org/llama.cpp",
    "lm-eval": "EleutherAI/lm-evaluation-harness",
    "lmdeploy": "InternLM/lmdeploy",
    "mlc-llm": "mlc-ai/mlc-llm",
    "mlx-lm": "ml-explore/mlx-lm",
    "ollama": "ollama/ollama",
    "omlx": "jundot/omlx",
    "pi": "earendil-works/pi",
    "sglang": "sgl-project/sglang",
    "smolagents": "huggingface/smolagents",
    "tabbyAPI": "theroyallab/tabbyAPI",
    "transformers": "huggingface/transformers",
    "unsloth": "unslothai/unsloth",
    "vllm": "vllm-project/vllm",
    "xgrammar": "mlc-ai/xgrammar",
}
"""Short names; a repository that is not here is written in full."""


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of fault. symptom: what the others did. issues: name#number, where there is a public report."""

    number: int
    section: str
    symptom: str
    issues: tuple[str, ...]

    @property
    def text(self) -> str:
        """The symptom with its reports, in Markdown."""
        links = ", ".join(f"[{issue}]({url_of(issue)})" for issue in self.issues)
        return f"{self.symptom} ({links})" if links else self.symptom


def url_of(issue: str) -> str:
    name, _, number = issue.partition("#")
    return f"https://github.com/{REPOSITORIES.get(name, name)}/issues/{number}"


def _row(number: int, section: str, symptom: str, *issues: str) -> tuple[int, Row]:
    return number, Row(number, section, symptom, issues)


ROWS: dict[int, Row] = dict(
    (
        _row(1, STOP, "vLLM streamed the start of a stop string that spans tokens", "vllm#3574"),
        _row(2, STOP, "vLLM left long stop strings in streamed text", "vllm#2577"),
        _row(4, STOP, "LMDeploy missed a stop string that the tokenizer joins with other text", "lmdeploy#1731"),
        _row(
            5,
            STOP,
            "Ollama cut by the order of the list, a client library at the last occurrence",
            "ollama#4797",
            "smolagents#2780",
        ),
        _row(
            7,
            STOP,
            "vLLM left a stop string in the reasoning, or stopped inside it and gave no answer",
            "vllm#52599",
            "vllm#53066",
        ),
        _row(8, STOP, "vLLM dropped the text that it held back", "vllm#42210"),
        _row(10, STOP, "vLLM cut a `</think>` marker in two while it held text back", "vllm#45636"),
        _row(
            11,
            STOP,
            "vLLM sent empty deltas while it held text back, and let token ids run ahead of text",
            "vllm#13087",
            "vllm#37042",
        ),
        _row(13, STOP, "vLLM was blocked by 500 000 stop strings", "vllm#51447"),
        _row(14, STOP_LOGPROBS, "vLLM listed log-probabilities of tokens behind the stop", "vllm#47616"),
        _row(16, STOP_LOGPROBS, "tabbyAPI merged the tokens that it held back into one entry", "tabbyAPI#141"),
        _row(17, STOP_LOGPROBS, "ik_llama.cpp lost the last entry where it did not stream", "ik_llama.cpp#998"),
        _row(
            19,
            BYTES,
            "LocalAI, vLLM and llama.cpp streamed emoji and Chinese as replacement characters",
            "LocalAI#677",
            "vllm#931",
            "llama.cpp#4036",
        ),
        _row(
            20,
            BYTES,
            "MLC-LLM broke emoji apart, and again where a token was a space and part of a character",
            "mlc-llm#804",
            "mlc-llm#1142",
            "mlc-llm#2978",
        ),
        _row(22, BYTES, "llama.cpp garbled Japanese, but only with log-probabilities on", "llama.cpp#11210"),
        _row(23, BYTES, "SGLang broke emoji when a bias was set", "sglang#3059"),
        _row(25, BYTES, "vLLM gave the bytes of the tokenizer's display characters", "vllm#19177"),
        _row(26, BYTES, "vLLM showed the tokenizer's mark `Ġ` in token texts", "vllm#16838"),
        _row(28, BYTES, "vLLM gave the end-of-turn token an empty text and empty bytes", "vllm#9463"),
        _row(29, BYTES, "llama.cpp wrote alternatives by other rules than the chosen token", "llama.cpp#18454"),
        _row(
            31,
            ECHO,
            "llama.cpp gave no log-probabilities of prompts, and evaluations fell to chance",
            "llama.cpp#27174",
        ),
        _row(32, ECHO, "vLLM's engine crashed on echo with logprobs", "vllm#5890"),
        _row(34, ECHO, "vLLM answered 500, because −∞ is not JSON", "vllm#10234"),
        _row(35, ECHO, "SGLang answered 500 for a number out of JSON's range", "sglang#5984"),
        _row(37, ECHO, "llama.cpp answered with logprobs null", "llama.cpp#11346"),
        _row(
            38,
            ECHO,
            "llama-cpp-python and mlx-lm left log-probabilities out of streams",
            "llama-cpp-python#197",
            "mlx-lm#1630",
        ),
        _row(40, ECHO, "vLLM refused more than 5", "vllm#5299", "lm-eval#1735"),
        _row(
            41,
            ECHO,
            "vLLM and a fork of it ran out of memory for a long prompt, or broke at 10",
            "local-inference-lab/vllm#264",
            "vllm#16836",
        ),
        _row(43, PROMPTS, "llama.cpp refused a prompt of token ids", "llama.cpp#15001"),
        _row(44, PROMPTS, "llama.cpp and Ollama had no lists of prompts", "llama.cpp#5539", "ollama#5259"),
        _row(46, PROMPTS, "vLLM's engine crashed on an id outside the vocabulary", "vllm#26797", "vllm#13175"),
        _row(47, PROMPTS, "vLLM ran into an index out of range with best_of > n", "vllm#4220"),
        _row(49, PROMPTS, "llama.cpp gave every finish chunk the index 0", "llama.cpp#20226"),
        _row(50, PROMPTS, "vLLM gave fewer choices than n", "vllm#52398", "vllm#17173"),
        _row(52, PROMPTS, "vLLM never finished n = 512", "vllm#6646"),
        _row(53, PROMPTS, "vLLM was exhausted by a huge n", "vllm#37952"),
        _row(55, PROMPTS, "LMDeploy streams the choices of all prompts with the index 0"),
        _row(56, SAMPLING, "vLLM's engine died of a bias for an id outside the vocabulary", "vllm#16529"),
        _row(
            58,
            SAMPLING,
            "llama.cpp let a request wipe the server's own bias",
            "llama.cpp#19699",
            "llama.cpp#20125",
            "llama.cpp#13605",
        ),
        _row(59, SAMPLING, "vLLM refused or ignored min_p and logit_bias in one of its modes", "vllm#42744"),
        _row(61, SAMPLING, "SGLang ignored seed", "sglang#15481", "sglang#15746"),
        _row(62, SAMPLING, "vLLM's greedy answers changed under load", "vllm#4091"),
        _row(64, SAMPLING, "vLLM's engine died of a top_k that is no integer", "vllm#3341"),
        _row(65, SAMPLING, "llama.cpp hung on values out of all range", "llama.cpp#19367"),
        _row(67, SAMPLING, "TensorRT-LLM counted the prompt for presence and frequency", "TensorRT-LLM#5623"),
        _row(68, SAMPLING, "SGLang left the prompt out of the repetition penalty", "sglang#5177"),
        _row(70, SAMPLING, "llama.cpp's default window turned penalties off", "llama.cpp#4675"),
        _row(71, USAGE, "SGLang left usage null in the whole stream", "sglang#954"),
        _row(73, USAGE, "llama.cpp sent a usage that nobody had asked for", "llama.cpp#16048", "llama.cpp#12102"),
        _row(
            74,
            USAGE,
            "llama-cpp-python and vLLM had no usage in streams",
            "llama-cpp-python#1082",
            "llama-cpp-python#1640",
            "vllm#7299",
        ),
        _row(
            76,
            TOOLS,
            "llama.cpp put a call's id into `function`, and repeated its name in each delta",
            "llama.cpp#13774",
            "llama.cpp#13800",
        ),
        _row(77, TOOLS, "Ollama gave every call of an answer the index 0", "ollama#15457"),
        _row(
            79,
            TOOLS,
            "vLLM failed on ids that were not nine characters long, as Mistral's template demands",
            "vllm#9019",
        ),
        _row(80, TOOLS, "llama.cpp took a named tool_choice for auto", "llama.cpp#26535"),
        _row(
            82,
            TOOLS,
            "llama.cpp and Unsloth dropped tools without a word where the template has none",
            "llama.cpp#27129",
            "unsloth#10314",
        ),
        _row(83, TOOLS, "TGI took auto for required", "TGI#2549"),
        _row(85, TOOLS, 'SGLang said "stop" after a call', "sglang#2877"),
        _row(86, TOOLS, 'vLLM said "tool_calls" with an empty list of them', "vllm#53255"),
        _row(
            88, TOOLS, 'vLLM said "tool_calls" of a streamed call that max_tokens had cut', "vllm#46303", "vllm#47963"
        ),
        _row(89, TOOLS, 'Ollama sent the finish reason "" on ordinary chunks', "ollama#4357"),
        _row(91, STRUCTURED, "XGrammar ignored bounds of integers and of arrays", "xgrammar#192"),
        _row(92, STRUCTURED, "vLLM ignored maxLength beside a pattern", "vllm#45592"),
        _row(94, STRUCTURED, "llama.cpp failed on `$ref`", "llama.cpp#8073", "llama.cpp#16790"),
        _row(
            95,
            STRUCTURED,
            "llama.cpp left out exclusiveMinimum and uniqueItems, and forbade keys that a schema allows",
            "llama.cpp#7789",
            "llama.cpp#8180",
        ),
        _row(
            97,
            STRUCTURED,
            "llama.cpp answered with free text where it could not make a grammar",
            "llama.cpp#19051",
            "llama.cpp#24097",
        ),
        _row(98, STRUCTURED, "vLLM wrote digits without end for the schema `{}`", "vllm#52011"),
        _row(100, STRUCTURED, "instructor could not tell JSON that max_tokens had cut", "instructor#276"),
        _row(101, VALIDATION, "vLLM's engine died of an empty prompt", "vllm#7283", "vllm#7632", "vllm#1130"),
        _row(103, VALIDATION, "SGLang answered 500 where the template has no system role", "sglang#892", "sglang#1342"),
        _row(104, VALIDATION, "vLLM failed on two user messages in a row", "vllm#6862"),
        _row(106, VALIDATION, "vLLM answered 500 to max_tokens null", "vllm#19862"),
        _row(
            107,
            VALIDATION,
            "vLLM refused unknown fields and the name of a message",
            "vllm#10463",
            "vllm#6890",
            "vllm#12864",
            "dynamo#8593",
        ),
        _row(109, VALIDATION, "llama.cpp failed on content in parts", "llama.cpp#8367"),
        _row(110, VALIDATION, "vLLM failed on empty content of an assistant", "vllm#21089"),
        _row(112, VALIDATION, "llama.cpp ignored max_completion_tokens", "llama.cpp#13700"),
        _row(
            113,
            VALIDATION,
            "vLLM refused a max_tokens beyond the rest of the context, and agents got stuck",
            "vllm#42474",
            "vllm#57035",
            "vllm#19861",
            "pi#4675",
        ),
        _row(115, VALIDATION, "Ollama cut long prompts without a word", "ollama#4967", "ollama#17889"),
        _row(116, VALIDATION, "vLLM answered 500 to a broken picture", "vllm#47163", "vllm#38253"),
        _row(118, VALIDATION, "SGLang took a name with a colon for an adapter", "sglang#12745"),
        _row(119, VALIDATION, "vLLM let the base model answer for an adapter", "vllm#55193", "vllm#34186"),
        _row(
            121,
            ENDINGS,
            "llama.cpp, SGLang and vLLM went on generating for clients that had gone away",
            "llama.cpp#24496",
            "sglang#3520",
            "vllm#54947",
            "sglang#36552",
        ),
        _row(
            122,
            ENDINGS,
            "transformers, vLLM, llama.cpp, Ollama and ds4 made control tokens of a user's text",
            "transformers#29279",
            "transformers#47386",
            "vllm#31735",
            "llama.cpp#26273",
            "ollama#15931",
            "ds4#95",
        ),
        _row(124, ENDINGS, "vLLM renamed reasoning_content and broke clients", "vllm#27755", "vllm#50624"),
        _row(125, SECOND, "vLLM ignored a schema of OctoAI's shape", "vllm#11363"),
        _row(127, SECOND, "oMLX left part of a stop string in the text", "omlx#2386"),
        _row(128, SECOND, "llama.cpp refused logprobs in a stream with tools", "am17an/llama.cpp#35"),
        _row(130, SECOND, "vLLM lost outputs with n > 1", "vllm#24029"),
        _row(131, SECOND, 'LiteLLM always said "stop", and a cut could not be seen', "litellm#25825"),
    )
)
