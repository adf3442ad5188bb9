"""Several ways of erasing in one run: a result each, of the same scores, resumed and spread as one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eraser_hub.__main__ import _register, app
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.outputs import get_partial_path
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.run_record import run_path

from ..needs import needs
from ..refusals import refused

pytestmark = needs("sklearn", "torch")

_register()  # the verbs, which the entry point loads by name
WAYS = ("remove", "mask", "infill")
SETTINGS = ExplainSettings(chunk=4, also_erase=WAYS[1:], infill="masked", bins=(0.1, 0.5))


@pytest.fixture(scope="module")
def masked(tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random masked language model."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    folder = tmp_path_factory.mktemp("masked") / "masked"
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def job(hub: Path, linear: Path, masked: Path) -> ExplainConfig:
    return ExplainConfig(dataset=str(hub), config="movies", split="val", model=str(linear), infill=str(masked), limit=9)


@pytest.fixture(scope="module")
def whole(job: ExplainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed run."""
    folder = tmp_path_factory.mktemp("whole")
    lines: list[str] = []
    report = explain(job, SETTINGS, folder / "p.jsonl", on_cost=lines.append)
    stated = int(lines[0].removeprefix("cost: at most ").partition(" ")[0].replace(",", ""))
    assert "`infill`" in lines[0] and stated >= report.inputs
    assert report.lines()[0] == ", ".join(str(folder / f"p.{way}.jsonl") for way in WAYS) + ": 9 instances each"
    return folder


def test_a_result_and_a_record_for_each_way(whole):
    names = [f"p.{way}.jsonl" for way in WAYS]
    assert sorted(path.name for path in whole.iterdir()) == sorted([*names, *(f"{name}.run.json" for name in names)])
    rows = [[json.loads(line) for line in (whole / name).read_text().splitlines()] for name in names]
    key = "comprehensiveness_classification_scores"
    for first, *others in zip(*rows, strict=True):
        for other in others:
            assert other["rationales"] == first["rationales"]
            assert other["classification_scores"] == first["classification_scores"]
    numbers = [[row[key] for row in of] for of in rows]
    assert numbers[0] == numbers[1] != numbers[2], "a bag of words holds no mask: that is removal; infilling is not"
    signatures = [json.loads((whole / f"{name}.run.json").read_text())["signature"] for name in names]
    assert "|erase:remove|seed:1|bins" in signatures[0] and "infill" not in signatures[0]
    assert "|erase:mask|seed:1|scores-erase:remove|bins" in signatures[1] and "infill" not in signatures[1]
    assert "|erase:infill|seed:1|scores-erase:remove|infill:masked|" in signatures[2]


def test_the_first_way_alone_gives_the_same_bytes(job, whole, tmp_path):
    explain(replace(job, infill=""), replace(SETTINGS, also_erase=(), infill=""), tmp_path / "p.remove.jsonl")
    assert (tmp_path / "p.remove.jsonl").read_bytes() == (whole / "p.remove.jsonl").read_bytes()


class Stop(Exception):
    pass


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_stopped_run_goes_on_to_the_same_bytes(job, whole, tmp_path, chunks):
    out, seen = tmp_path / "p.jsonl", [0]

    def stop(instances: int, passes: int) -> None:
        seen[0] += instances > 0
        if seen[0] == chunks:
            raise Stop

    with pytest.raises(Stop):
        explain(job, SETTINGS, out, on_progress=stop)
    assert [path.name for path in tmp_path.glob("p.*jsonl*")] == ["p.jsonl.partial"]
    with refused("resume", "resume", "also_erase", "['mask', 'infill']", "['infill']"):
        explain(job, replace(SETTINGS, also_erase=("infill",)), out, resume=True)
    assert explain(job, SETTINGS, out, resume=True).resumed == 4 * chunks
    for path in whole.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert explain(job, SETTINGS, out, resume=True).passes == 0


def test_killed_between_results_and_records(job, whole, tmp_path):
    """What is written of a run whose chunks still lie there is its own: it goes on."""
    out = tmp_path / "p.jsonl"
    with pytest.raises(Stop):
        explain(
            job, SETTINGS, out, on_progress=lambda instances, passes: (_ for _ in ()).throw(Stop) if instances else None
        )
    (tmp_path / "p.remove.jsonl").write_bytes((whole / "p.remove.jsonl").read_bytes())
    explain(job, SETTINGS, out, resume=True)
    assert (tmp_path / "p.mask.jsonl").read_bytes() == (whole / "p.mask.jsonl").read_bytes()


def test_other_results_are_not_replaced(job, whole, tmp_path):
    out = tmp_path / "p.jsonl"
    (tmp_path / "p.mask.jsonl").write_text('{"mine": 1}\n')
    with refused("file-exists", "force", file="p.mask.jsonl"):
        explain(job, SETTINGS, out)
    (tmp_path / "p.mask.jsonl").write_bytes((whole / "p.mask.jsonl").read_bytes())
    run_path(tmp_path / "p.mask.jsonl").write_bytes(run_path(whole / "p.mask.jsonl").read_bytes())
    with refused("file-exists", "force", "seed", "1", "2", file="p.mask.jsonl"):
        explain(job, replace(SETTINGS, seed=2), out)
    assert not get_partial_path(out).exists()


def test_inputs_are_counted_before_the_run(job, tmp_path):
    with refused("size-limit", "max_inputs", "500", "infill"):
        explain(job, SETTINGS, tmp_path / "p.jsonl", max_inputs=500)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "rule", "mentions"),
    [
        (["--erase", "infill"], "", ["--infill", "''"]),
        (["--erase", "remove,remove"], "", ["--erase", "each way once"]),
        (["--erase", "remove,melt"], "", ["--erase", "remove, mask, pad, infill", "'melt'"]),
        (["--infill", "MODEL"], "", ["--infill", "--erase infill", "'masked'"]),
        (["--erase", "infill", "--infill", "LINEAR"], "model", ["LINEAR"]),
    ],
)
def test_wrong_words_on_the_command_line(job, tmp_path, words, rule, mentions):
    words = [{"MODEL": job.infill, "LINEAR": job.model}.get(word, word) for word in words]
    mentions = [Path(job.model).name if mention == "LINEAR" else mention for mention in mentions]
    where = ["--dataset", job.dataset, "--model", job.model, "--split", "val", "--out", str(tmp_path / "p.jsonl")]
    done = CliRunner().invoke(app, ["explain", *where, *words])
    if rule:
        with refused(rule, *mentions):
            raise done.exception
    else:  # told by the command line itself
        assert done.exit_code == 2 and not [mention for mention in mentions if mention not in done.output]
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_them_all(job, whole, tmp_path):
    where = ["--dataset", job.dataset, "--model", job.model, "--split", "val", "--limit", "9", "--chunk", "4"]
    ways = ["--erase", ",".join(WAYS), "--infill", job.infill, "--bins", "10,50"]
    done = CliRunner().invoke(app, ["explain", *where, *ways, "--out", str(tmp_path / "p.jsonl"), "--quiet"])
    assert done.exit_code == 0, done.output
    for way in WAYS:
        assert (tmp_path / f"p.{way}.jsonl").read_bytes() == (whole / f"p.{way}.jsonl").read_bytes()


@pytest.mark.slow
def test_on_ray(job, whole, tmp_path):
    pytest.importorskip("ray")
    explain(job, SETTINGS, tmp_path / "p.jsonl", engine="ray", workers=2)
    for way in WAYS:
        assert (tmp_path / f"p.{way}.jsonl").read_bytes() == (whole / f"p.{way}.jsonl").read_bytes()
