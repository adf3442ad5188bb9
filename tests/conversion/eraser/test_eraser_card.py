"""The card of ``eraser``: what a reader looks for stands in it, and it says what the folder holds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from huggingface_hub import DatasetCard

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.eraser.card import is_whole
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.dataset import open_own

ERASER = get_dataset("eraser")


@pytest.fixture(scope="module")
def card(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hub")
    return ERASER.build(None, out=out, source=samples / "eraser").folder / "README.md"


def test_the_metadata_follow_the_hubs_rules(card: Path) -> None:
    loaded = DatasetCard.load(card)
    values = loaded.data.to_dict()
    assert yaml.safe_load(loaded.data.to_yaml()) == values
    assert values["language"] == ["en"] and values["multilinguality"] == ["monolingual"]
    assert set(values["task_categories"]) == {"text-classification", "question-answering"}
    assert set(values["license"]) == {"unknown", "cc-by-sa-3.0", "mit", "bsd-3-clause"}
    assert values["annotations_creators"] == ["crowdsourced", "expert-generated"]
    assert values["language_creators"] == ["crowdsourced", "expert-generated", "found"]
    assert {"extended|esnli", "extended|fever", "extended|other"} <= {*values["source_datasets"]}
    assert all(tag == tag.lower() for tag in values["tags"])
    assert [entry["config_name"] for entry in values["configs"]] == list(CONFIGS)
    assert [entry["config_name"] for entry in values["configs"] if entry.get("default")] == ["movies"]


def test_the_prose_has_what_a_reader_looks_for_in_1200_words(card: Path) -> None:
    text = read_card(card)[1]
    assert sum(bool(re.search(r"\w", word)) for word in text.split()) <= 1200
    links = text.split("\n\n")[1]
    for target in ("aclanthology.org", "arxiv.org/abs/1911.03429", "eraserbenchmark.com", "github.com", "contact",
                   "eraser_agreement", "eraser_faithfulness"):  # fmt: skip
        assert target in links
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings == ["Configurations", "Columns", "Statistics and quirks", "Annotators, content, biases",
                        "Licences and citation"]  # fmt: skip
    assert text.count("<details>") == text.count("</details>") == 2
    for name, facts in CONFIGS.items():
        assert f"| `{name}` |" in text and (name.endswith(("_flat", "_simplified")) or facts.license_note in text)
    for column in ERASER.schema.names:
        assert f"`{column}`" in text
    block = text[text.index("```bibtex") :].split("```")[1]
    assert block.count("{") == block.count("}")


def test_a_part_of_the_release_says_so(card: Path, corpora: Path, tmp_path: Path) -> None:
    metadata, text = read_card(card)
    assert metadata["pretty_name"].endswith("(a sample, or a part of the release)") and "part of the release)\n" in text
    extent = "**A sample, or a part of the release**: 260 instances; none of the configurations is whole."
    assert text.split("\n\n")[2] == extent
    assert "6 / 5 / 5 of 6,363 / 1,491 / 2,817, test_comprehensive 4, test_original 4" in text
    assert "whole:" not in text and "| `movies` | train | 26 | 14.3 | 99 | 4.7 | no |" in text
    folder = ERASER.build(["movies"], source=corpora, out=tmp_path).folder
    metadata, text = read_card(folder / "README.md")
    assert "1,600 / 200 / – of 1,600 / 200 / 200" in text and "`fever` |" not in text
    assert (metadata["language_creators"], metadata["annotations_creators"]) == (["found"], ["expert-generated"])


@pytest.mark.parametrize(
    ("config", "sizes", "whole"),
    [
        ("movies", (1600, 200, 199), True),  # as released
        ("movies", (1600, 200, 190), False),
        ("cose", (8752, 1086, 1079), True),
        ("boolq", (6363, 1491, 2807), True),
        ("esnli_flat", (549309, 9823, 9807), True),
        ("cose_simplified", (20, 15, 10), False),
    ],
)
def test_a_config_is_whole_with_about_the_printed_instances(config: str, sizes: tuple[int, ...], whole: bool) -> None:
    assert is_whole(config, dict(zip(("train", "validation", "test"), sizes, strict=True))) is whole


def test_a_whole_release_shows_the_papers_figures_beside_its_own(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eraser_hub.conversion.eraser.card.MIN_SHARE", 0)
    folder = ERASER.build(["movies"], source=samples / "eraser", out=tmp_path).folder
    text = read_card(folder / "README.md")[1]
    assert "holds `movies` whole" in text and "| `movies` | train | 26 (1,599, -1,573) | 14.27 (9.35, +4.92) |" in text


def test_a_corpus_of_ones_own_has_a_card_of_its_own(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(samples / "eraser" / "movies", folder, ignore=shutil.ignore_patterns("human*", "*.bak"))
    (folder / "corpus.yaml").write_text("name: mine\nlabels: [NEG, POS]\ncitation: '@misc{a`|b, title = {x}}'\n")
    own = open_own(folder)
    assert own is not None
    metadata, text = read_card(own.build(None, source=folder, out=tmp_path / "hub").folder / "README.md")
    assert (metadata["pretty_name"], metadata["license"]) == ("mine", ["unknown"]) and "language" not in metadata
    assert 'load_dataset("mine")' in text and "Labels: `NEG`, `POS`." in text and "<!--" not in text
    assert "| `rationale_positions` |" in text and "| mine | train | 26 | 1 |" in text
    assert "```bibtex\n@misc{a'|b, title = {x}}\n```" in text and "eraserbenchmark.com" not in text
