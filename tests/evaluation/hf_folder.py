"""A GGUF file as a Hugging Face folder: the dequantised weights, the tokenizer and the chat template.

Run as a program it takes the file and the folder.
"""

import sys
from pathlib import Path

from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoTokenizer

from numeric.hugging_face import load


def write_hf_folder(gguf: Path, folder: Path) -> None:
    """For models of the architecture "llama" with llama.cpp's pre-tokenizer "smollm"; with 32-bit floats."""
    load(gguf).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # transformers does not read which pre-tokenizer a file names.
    digits_apart = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(digits_apart)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    write_hf_folder(Path(sys.argv[1]), Path(sys.argv[2]))
