"""Secrets on a command line: what is written down of them, and what is left as it is."""

import json

import pytest

from jaxscope.log import secret_values, store
from jaxscope.log.secret_values import MARK

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "hunter2"],
        ["--api_key=hunter2"],
        ["--apiKey", "hunter2"],
        ["--password", "-hunter2"],
        ["--wandb-token", "hunter2"],
        ["--auth", "hunter2"],
        ["--client.secret", "hunter2"],
        ["+logger.wandb.api_key=hunter2"],
        ["HF_TOKEN=hunter2", "train.py"],
        ["--db", "postgres://ann:hunter2@db.example/x"],
        ["--url", "https://example.org/?lr=1&access_token=hunter2&x=1"],
        ["--config", '{"lr": 1, "api_key": "hunter2"}'],
        ["-c", "import wandb; wandb.login(key='hunter2')"],
        ["-H", "Authorization: Bearer hunter2hunter2"],
    ],
)
def test_a_secret_by_its_name_is_left_out(words):
    found = secret_values.words(["train.py", *words])
    assert HIDDEN not in " ".join(found) and MARK in " ".join(found) and len(found) == len(words) + 1


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf_abcdefghijklmnopqrstuvwx",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "xoxb-123456789012-abcdefABCDEF",
        "0f3a9c1b2d4e5f60718293a4b5c6d7e8f9012345",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_by_its_shape_is_left_out_wherever_it_stands(secret):
    for words in ([secret], [f"--data={secret}"], ["--x", secret], ["-c", f"f('{secret}', 1)"]):
        found = " ".join(secret_values.words(words))
        assert secret not in found and MARK in found


@pytest.mark.parametrize(
    "words",
    [
        ["--max-tokens", "512", "--tokenizer", "gpt2", "--pad-token", "<pad>"],
        ["--num-key-value-heads", "8", "--key", "0", "--prng-key", "17", "--sort-key", "name"],
        ["--lr=1e-3", "--hidden-size", "4096", "--author", "ann", "--keyboard", "de"],
        ["--name", "exp_lr1e-3_bs128_seed42_2026-01-02", "checkpoint20260102T030405"],
        ["gs://bucket/a0b1c2d3e4f5a0b1c2d3e4f5/x", "meta-llama/Llama3170BInstruct2024"],
        ["-c", "import jax; print(jax.random.key(0))"],
    ],
)
def test_what_is_no_secret_stays(words):
    assert secret_values.words(words) == words


def test_no_secret_reaches_a_runs_meta_json_or_a_name_in_it(tmp_path):
    run = store.create(
        tmp_path / "run", argv=["a.py", "--token", "hunter2"], settings={"HF_TOKEN": "hunter2", "LR": "1"}
    )
    assert "hunter2" not in (run.path / "meta.json").read_text()
    meta = json.loads((run.path / "meta.json").read_text())
    assert meta["argv"] == ["a.py", "--token", MARK] and meta["settings"] == {"HF_TOKEN": MARK, "LR": "1"}


def test_a_long_word_takes_no_quadratic_time():
    """A text of a megabyte without spaces, such as an image in a source file."""
    assert secret_values.without("é" * 1_000_000 + " = 'c'").endswith(" = 'c'")
