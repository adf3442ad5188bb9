"""What the papers print: kd as in the papers, and tables that agree with each other."""

from __future__ import annotations

import pytest

from eraser_hub.papers import PAPERS, find_comprehensive, load_paper

pytestmark = pytest.mark.unit

SPLITS = ("train", "validation", "test")


def test_kd_of_every_config() -> None:
    """ERASER's first version, Table 4; the bilingual benchmark, Table 3."""
    fifths = dict.fromkeys(("evidence_inference", "fever", "multirc"), 0.20)
    assert load_paper("eraser_first_version").kd == fifths | {
        "boolq": 0.10,
        "movies": 0.10,
        "cose": 0.30,
        "esnli": 0.30,
    }
    english = {"senti_en": 0.201, "similarity_en": 0.504, "mrc_en": 0.104}
    assert load_paper("wang_2022").kd == english | {"senti_ch": 0.276, "similarity_ch": 0.666, "mrc_ch": 0.098}


@pytest.mark.parametrize("config", ["movies", "multirc", "fever", "boolq", "evidence_inference", "cose", "esnli"])
def test_tables_agree_with_each_other(config: str) -> None:
    tables = load_paper("eraser_acl_2020").tables
    one, six = tables["table_1"].row(config), tables["table_6"].row(config)
    for split in SPLITS:
        assert one[split] == tables["table_5"].row(config, split)["instances"]
    total = sum(int(one[split]) for split in SPLITS)
    if config == "boolq":  # the paper's own tables differ here: 6363 + 1491 + 2817 = 10671, Table 6 says 10661
        assert (total, six["instances"]) == (10671, "10661")
    else:
        assert total == int(six["instances"])
    assert one["tokens"] == six["tokens"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_citation_is_bibtex_in_one_line(name: str) -> None:
    citation = load_paper(name).citation
    assert citation.startswith("@") and citation.count("{") == citation.count("}") and "\n" not in citation


def test_comprehensive_gold_is_said_by_split() -> None:
    """ERASER, Table 1 and Appendix A."""
    assert [find_comprehensive("movies", split) for split in SPLITS] == [False, False, True]
    assert find_comprehensive("boolq", "test") is False and find_comprehensive("boolq", "test_comprehensive") is True
    assert find_comprehensive("cose_simplified", "test") is find_comprehensive("esnli_flat", "train") is True
    assert find_comprehensive("reviews", "test") is None and find_comprehensive("movies", "dev") is None
    assert {load_paper(name).split for name in PAPERS} == {"test"}
