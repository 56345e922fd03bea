"""How model families write their calls, told from their chat templates: one small file each,
or one for those that write alike."""

from octavo.streaming.tool_formats.apertus import APERTUS
from octavo.streaming.tool_formats.base import ToolFormat
from octavo.streaming.tool_formats.command_r_plus import COMMAND_R_PLUS
from octavo.streaming.tool_formats.deepseek import DEEPSEEK_R1, DEEPSEEK_V31
from octavo.streaming.tool_formats.functionary_v3_1 import FUNCTIONARY_V3_1
from octavo.streaming.tool_formats.functionary_v3_2 import FUNCTIONARY_V3_2
from octavo.streaming.tool_formats.gemma4 import GEMMA_4
from octavo.streaming.tool_formats.gigachat import GIGACHAT_3, GIGACHAT_3_1
from octavo.streaming.tool_formats.glm import GLM, HUNYUAN
from octavo.streaming.tool_formats.harmony import HARMONY
from octavo.streaming.tool_formats.hermes import HERMES
from octavo.streaming.tool_formats.invokes import DEEPSEEK_V4, DEEPSEEK_V32, MINIMAX_M2
from octavo.streaming.tool_formats.kimi_k2 import KIMI_K2
from octavo.streaming.tool_formats.kimi_k3 import KIMI_K3
from octavo.streaming.tool_formats.listed import (
    APRIEL,
    COMMAND_R7B,
    FIREFUNCTION,
    GRANITE,
    LFM2,
    NEMOTRON_NANO_V2,
    PHI,
)
from octavo.streaming.tool_formats.llama import LLAMA
from octavo.streaming.tool_formats.minicpm import MINICPM
from octavo.streaming.tool_formats.minimax_m1 import MINIMAX_M1
from octavo.streaming.tool_formats.minimax_m3 import MINIMAX_M3
from octavo.streaming.tool_formats.mistral import MISTRAL, MISTRAL_NEMO
from octavo.streaming.tool_formats.muse import MUSE
from octavo.streaming.tool_formats.qwen3_coder import QWEN3_CODER, SEED_OSS
from octavo.streaming.tool_formats.solar import SOLAR

FORMATS = (
    APERTUS,
    APRIEL,
    COMMAND_R7B,
    COMMAND_R_PLUS,
    FIREFUNCTION,
    FUNCTIONARY_V3_1,
    FUNCTIONARY_V3_2,
    GIGACHAT_3_1,
    GIGACHAT_3,
    GRANITE,
    LFM2,
    LLAMA,
    MISTRAL,
    MISTRAL_NEMO,
    NEMOTRON_NANO_V2,
    PHI,
    MINIMAX_M1,
    SEED_OSS,
    QWEN3_CODER,
    HUNYUAN,
    GLM,
    DEEPSEEK_R1,
    DEEPSEEK_V31,
    DEEPSEEK_V32,
    DEEPSEEK_V4,
    MINIMAX_M2,
    MINIMAX_M3,
    KIMI_K2,
    MINICPM,
    GEMMA_4,
    HARMONY,
    KIMI_K3,
    MUSE,
    SOLAR,
    HERMES,
)
"""The first whose signs are found is a template's: so Hermes', which are in others too, comes last."""

GENERIC = HERMES
"""Of models without a format of their own, whose prompt asks for this one."""

BY_NAME = {format.name: format for format in FORMATS}


def format_of(template_source: str) -> ToolFormat:
    """The format of a chat template's model; the generic one where it shows none that is known."""
    return next((each for each in FORMATS if all(sign in template_source for sign in each.signs)), GENERIC)


__all__ = ["BY_NAME", "FORMATS", "GENERIC", "ToolFormat", "format_of"]
