"""A folder with tokenizer_config.json gives the ids that `transformers` gives for its general tokenizer class."""

import json

import pytest
from transformers import AutoTokenizer

from harness import assert_equal, llama3, random_texts, tokenize
from test_against_tokenizers import llama2_style, qwen_style


def token(content, **flags):
    base = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return base | {"content": content} | flags


CONFIGS = {
    "nothing": {},
    "named": {"bos_token": "<s>", "eos_token": {"__type": "AddedToken", **token("</s>")}},
    "no_bos": {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": False},
    "bos_and_eos": {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "add_eos_token": True},
    "bos_unknown": {"eos_token": "</s>", "add_bos_token": True, "add_eos_token": False},
    "new_names": {"bos_token": "<new>", "eos_token": "</s>", "pad_token": "<pad>", "sep_token": "Camel", "add_bos_token": True},
    "added": {"eos_token": "</s>", "added_tokens_decoder": {"1500": token("hello"), "1501": token("<|", special=False)}},
    "changed": {"eos_token": "</s>", "added_tokens_decoder": {"1": token("</s>", rstrip=True), "0": token("<s>", lstrip=True)}},
    "plain": {"eos_token": "</s>", "split_special_tokens": True},
}
TEXTS = random_texts(1500) + ["<s> a </s>  b<new>hello <|eot_id|>", "a<pad>Camel", " <s>", "</s> ", "<|begin_of"]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("make", [llama2_style, qwen_style])
def test_ids_are_those_of_transformers(make, config, tmp_path):
    make(tmp_path)
    content = CONFIGS[config] | {"tokenizer_class": "PreTrainedTokenizerFast"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(content))
    reference = AutoTokenizer.from_pretrained(tmp_path)
    assert_equal(TEXTS, tokenize(tmp_path, TEXTS), reference(TEXTS).input_ids)
    if reference.eos_token is not None:
        assert tokenize(tmp_path, ["x"], "--append-eod")[0][-1] == reference.eos_token_id


def test_llama3(tmp_path):
    llama3(tmp_path)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert_equal(TEXTS, tokenize(tmp_path, TEXTS), AutoTokenizer.from_pretrained(tmp_path)(TEXTS).input_ids)
