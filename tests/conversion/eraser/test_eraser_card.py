"""The card of ``eraser``: every mark filled, and what the Hub's own library says of it."""

from __future__ import annotations

import re

import pytest
import yaml
from huggingface_hub import DatasetCard, DatasetCardData
from huggingface_hub.repocard import metadata_load

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built, read_card
from eraser_hub.conversion.eraser.card import PLACEHOLDERS, fill_prose
from eraser_hub.conversion.eraser.configs import CONFIGS

from ...refusals import refused

# the Hub's lists, as far as this card uses them
TASKS = {"text-classification", "question-answering", "token-classification", "multiple-choice"}
LICENCES = {"unknown", "cc-by-sa-3.0", "cc-by-sa-4.0", "mit", "bsd-3-clause", "apache-2.0", "other"}
SIZES = re.compile(r"n<1K|1K<n<10K|10K<n<100K|100K<n<1M|1M<n<10M")


@pytest.fixture(scope="module")
def card_file(samples, tmp_path_factory):
    out = tmp_path_factory.mktemp("hub")
    return HUB_DATASETS["eraser"].build(None, out=out, source=samples / "eraser").folder / "README.md"


def test_the_card_loads_as_a_hub_card_and_comes_back_the_same(card_file):
    card = DatasetCard.load(card_file)
    assert isinstance(card.data, DatasetCardData)
    values = metadata_load(card_file)
    assert card.data.to_dict() == values
    again = DatasetCard(str(card))
    assert again.data.to_dict() == values and again.text.strip() == card.text.strip()
    assert yaml.safe_load(card.data.to_yaml()) == values


def test_the_metadata_follow_the_hubs_rules(card_file):
    values = metadata_load(card_file)
    assert values["language"] == ["en"]
    assert set(values["task_categories"]) <= TASKS
    licences = values["license"] if isinstance(values["license"], list) else [values["license"]]
    assert set(licences) <= LICENCES
    assert all(SIZES.fullmatch(size) for size in values["size_categories"])
    assert values["pretty_name"] and all(isinstance(tag, str) and tag == tag.lower() for tag in values["tags"])
    names = [entry["config_name"] for entry in values["configs"]]
    assert names == [entry["config_name"] for entry in values["dataset_info"]] == list(CONFIGS)
    assert [entry["config_name"] for entry in values["configs"] if entry.get("default")] == ["movies"]
    for entry in values["dataset_info"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", str(entry["version"]))
        assert entry["license"] and entry["homepage"].startswith("https://") and entry["citation"].startswith("@")


def test_the_prose_says_what_a_reader_looks_for(card_file):
    text = DatasetCard.load(card_file).text
    assert "<!--" not in text
    for heading in (
        "Configurations and splits",
        "Columns",
        "Statistics",
        "Known quirks of the release",
        "Licences",
        "Citation",
    ):
        assert f"\n## {heading}\n" in text
    for name, facts in CONFIGS.items():
        assert f"| `{name}` |" in text and facts.license_note in text
    assert "| `boolq` | 6 | 5 | 5 | `test_comprehensive` 4, `test_original` 4 |" in text
    entries = re.findall(r"^@inproceedings\{([^,]+),", text, flags=re.MULTILINE)
    assert len(entries) == len(set(entries)) == 11
    block = text[text.index("```bibtex") :].split("```")[1]
    assert block.count("{") == block.count("}")


def test_the_example_in_the_card_is_a_row(card_file):
    import json

    from eraser_hub.conversion.eraser.schema import SCHEMA
    from eraser_hub.metrics.plain import split_sentences, split_tokens

    text = DatasetCard.load(card_file).text
    row = json.loads(re.search(r"```json\n(.*?)```", text, flags=re.DOTALL).group(1))
    assert list(row) == SCHEMA.names
    tokens = split_tokens(row["documents"][0]["text"])
    evidence = row["evidences"][0][0]
    assert " ".join(tokens[evidence["start_token"] : evidence["end_token"]]) == evidence["text"]
    assert row["rationale_positions"] == [list(range(evidence["start_token"], evidence["end_token"]))]
    assert row["rationale"] == evidence["text"]
    assert (row["num_tokens"], row["num_sentences"]) == (len(tokens), len(split_sentences(row["documents"][0]["text"])))
    assert row["rationale_ratio"] == pytest.approx(len(row["rationale_positions"][0]) / len(tokens))


def test_the_card_tells_the_statistics_of_what_was_built_beside_the_papers(card_file):
    """The same figures as `eraser-hub stats` counts from the Parquet, in every split that there is."""
    from eraser_hub.conversion.eraser.statistics import compute_statistics

    table = next(each for each in compute_statistics(card_file.parent).tables if each.name == "table_5")
    text = DatasetCard.load(card_file).text
    lines = text[text.index("## Statistics") : text.index("## Known quirks")].splitlines()
    found = {tuple(cell.strip(" `") for cell in line.split("|")[1:-1]) for line in lines if line.startswith("| `")}
    expected = {tuple(line) for line in table.to_strings()[1:]}
    assert expected <= found and {cells[1] for cells in expected} >= {"train", "test_comprehensive", "train_sanity"}
    assert {cells[:2] for cells in found} == {cells[:2] for cells in expected}


def test_what_the_paper_prints_of_a_split_that_is_not_there_stands_in_brackets():
    release = {"movies": {"splits": {"validation": {"num_examples": 3, "statistics": {"instances": 3}}}}}
    marks = " ".join(f"<!-- {mark} -->" for mark in PLACEHOLDERS)
    text = fill_prose(marks, release, {"movies": CONFIGS["movies"]})
    assert "| `movies` | train | (1,599) | (1,600) | (9.35) | (13,878) | (7.7) |" in text
    assert "| `movies` | validation | (200) | 3 (200, -197) | (7.2) | (1,517) | (6.6) |" in text


def test_a_mark_that_is_missing_is_an_error():
    with refused("<!-- licences -->"):
        fill_prose("<!-- splits --> <!-- own corpora --> <!-- gold --> <!-- table 5 -->", {}, {})


def test_the_card_says_where_the_texts_are_from_and_what_the_tasks_are(card_file):
    metadata, prose = read_card(card_file)
    assert metadata["language_creators"] == ["crowdsourced", "expert-generated", "found"]
    assert metadata["annotations_creators"] == ["crowdsourced", "expert-generated"]
    assert metadata["multilinguality"] == ["monolingual"]
    assert {"fact-checking", "multiple-choice-qa", "natural-language-inference", "sentiment-classification"} == {
        *metadata["task_ids"]
    }
    assert {"extended|esnli", "extended|fever", "extended|other"} <= {*metadata["source_datasets"]}
    assert "| `evidence_inference` | mit | Evidence Inference's LICENSE says MIT (2019" in prose


def test_a_card_of_one_corpus_says_its_creators_alone(samples, tmp_path):
    folder = HUB_DATASETS["eraser"].build(["movies"], out=tmp_path, source=samples / "eraser").folder
    metadata, _ = read_card(folder / "README.md")
    assert (metadata["language_creators"], metadata["annotations_creators"]) == (["found"], ["expert-generated"])
    assert metadata["task_ids"] == ["sentiment-classification"]


def test_the_cards_recipe_puts_configs_together(card_file, monkeypatch):
    """The block of the card as it stands."""
    prose = read_card(card_file)[1]
    (block,) = (
        block for block in re.findall(r"```python\n(.*?)```", prose, re.DOTALL) if "concatenate_datasets(" in block
    )
    monkeypatch.chdir(card_file.parent.parent)
    names: dict[str, object] = {}
    exec("from datasets import load_dataset\n" + block, names)
    both = names["both"]
    assert set(both["classification"]) == {"NEG", "POS", "REFUTES", "SUPPORTS"}
    assert both.num_rows == sum(
        open_built(card_file.parent).info(name)["splits"][0]["num_examples"] for name in ("movies", "fever")
    )
