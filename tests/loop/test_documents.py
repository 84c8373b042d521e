"""Document boundaries through the real program, against Hugging Face's Llama with an explicit mask."""

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

import train_harness as h

SEQ = 48
HF = h.GOLDEN / "llama/hf"


@pytest.fixture(scope="module")
def model():
    return LlamaForCausalLM.from_pretrained(HF, dtype=torch.float64, attn_implementation="eager").train()


@pytest.fixture(scope="module")
def documents(model):
    random = np.random.default_rng(3)
    eod = model.config.vocab_size - 1
    return [np.append(random.integers(0, eod, size=n), eod) for n in (5, 30, 0, 70, 11, 2, 40, 25, 1, 60)]


def rows(documents, count):
    text = np.concatenate(documents)
    return np.stack([text[i * SEQ : i * SEQ + SEQ + 1] for i in range(count)])


def starts_after_eod(tokens, eod):
    """For each token, where its document starts in the row."""
    start, result = 0, []
    for i, token in enumerate(tokens):
        result.append(start)
        if token == eod:
            start = i + 1
    return np.array(result)


def starts_of_documents(documents, row):
    ends = np.cumsum([len(d) for d in documents])
    place = np.arange(row * SEQ, row * SEQ + SEQ)
    begins = np.concatenate([[0], ends])[np.searchsorted(ends, place, side="right")]
    return np.maximum(begins - row * SEQ, 0)


def oracle(model, documents, count, starts, masked, positions_reset, eod_masked):
    """Mean loss and gradient norm of `count` rows; attention is hidden before each token's start."""
    eod = model.config.vocab_size - 1
    model.zero_grad()
    loss, tokens = 0, 0
    for r, row in enumerate(rows(documents, count)):
        start = starts(row[:-1], r)
        place = np.arange(SEQ)
        seen = place[None, :] <= place[:, None]
        if masked:
            seen &= place[None, :] >= start[:, None]
        mask = torch.zeros(1, 1, SEQ, SEQ, dtype=torch.float64).masked_fill(~torch.from_numpy(seen), -np.inf)
        position = place - start if positions_reset else place
        logits = model(torch.from_numpy(row[None, :-1]), attention_mask=mask,
                       position_ids=torch.from_numpy(position[None])).logits[0]
        losses = torch.nn.functional.cross_entropy(logits, torch.from_numpy(row[1:]), reduction="none")
        counts = torch.from_numpy(row[:-1] != eod) if eod_masked else torch.ones(SEQ, dtype=bool)
        loss = loss + losses[counts].sum()
        tokens += int(counts.sum())
    (loss / tokens).backward()
    norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
    return loss.item() / tokens, norm.item(), tokens


CASES = {
    "none": ({}, False, False, False),
    "eod_mask_loss": ({"eod_mask_loss": True}, False, False, True),
    "positions": ({"reset_position_ids": True}, False, True, False),
    "attention": ({"reset_attention_mask": True}, True, False, False),
    "all": ({"reset_position_ids": True, "reset_attention_mask": True, "eod_mask_loss": True}, True, True, True),
    "documents": ({"dataloader_inter_document_masking": True}, True, True, False),
}


@pytest.mark.parametrize("case", CASES)
def test_against_explicit_mask(tmp_path, model, documents, case):
    flags, masked, positions_reset, eod_masked = CASES[case]
    prefix = h.write_dataset(tmp_path / "text", documents)
    vocab = model.config.vocab_size
    ranks = h.run(tmp_path, h.tiny_flags(
        prefix, 1, load_hf=HF, data_order="sequential", split="100,0,0", seq_length=SEQ, global_batch_size=4,
        micro_batch_size=2, tokenizer_type="NullTokenizer", vocab_size=vocab, make_vocab_size_divisible_by=1,
        num_layers=None, hidden_size=None, ffn_hidden_size=None, num_attention_heads=None,
        max_position_embeddings=None, untie_embeddings_and_output_weights=None, params_dtype="fp64",
        calculate_per_token_loss=True, **flags))
    (event,) = ranks[0].events("iteration")
    if case == "documents":
        starts = lambda tokens, row: starts_of_documents(documents, row)  # noqa: E731
    else:
        starts = lambda tokens, row: starts_after_eod(tokens, vocab - 1)  # noqa: E731
    loss, norm, tokens = oracle(model, documents, 4, starts, masked, positions_reset, eod_masked)
    # Angles are computed in fp32 on both sides; the rest is fp64.
    assert event["lm_loss"] == pytest.approx(loss, rel=1e-6)
    assert event["grad_norm"] == pytest.approx(norm, rel=1e-6)
    assert event["tokens"] == tokens
