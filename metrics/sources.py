"""Papers that define the scores, and papers whose choices the option ``paper=`` selects."""

from __future__ import annotations

from typing import NamedTuple

from .issues import InputError


class PaperSource(NamedTuple):
    """Paper: BibTeX, address, the benchmark's page, and the authors' code."""

    citation: str
    url: str
    homepage: str = ""
    codebase: str = ""


ERASER = PaperSource(
    """\
@inproceedings{deyoung2020eraser,
  title = {{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models},
  author = {DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
            Socher, Richard and Wallace, Byron C.},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics (ACL)},
  year = {2020}
}
""",
    "https://aclanthology.org/2020.acl-main.408",
    "https://www.eraserbenchmark.com",
    "https://github.com/jayded/eraserbenchmark",
)
FINE_GRAINED = PaperSource(
    """\
@inproceedings{wang2022finegrained,
  title = {A Fine-grained Interpretability Evaluation Benchmark for Neural {NLP}},
  author = {Wang, Lijie and others},
  booktitle = {Proceedings of the 26th Conference on Computational Natural Language Learning (CoNLL)},
  year = {2022}
}
""",
    "https://aclanthology.org/2022.conll-1.6/",
)
HUMAN_RATIONALES = PaperSource(
    """\
@inproceedings{carton2020evaluating,
  title = {Evaluating and Characterizing Human Rationales},
  author = {Carton, Samuel and Rathore, Anirudh and Tan, Chenhao},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year = {2020}
}
""",
    "https://aclanthology.org/2020.emnlp-main.747/",
    codebase="https://github.com/BoulderDS/evaluating-human-rationales",
)

# Wang et al. (2022): means over gold records, scored or not
WANG2022 = "wang2022"
PAPERS = ("eraser", WANG2022, "carton2020")


def check_paper(paper: str | None, *known: str) -> None:
    """Raise a ValueError if the paper is not one of the known ones."""
    if paper is not None and paper not in known:
        of = f", whose choices differ here; {paper} changes nothing in these scores" if paper in PAPERS else ""
        raise InputError(
            f"expected {' or '.join(map(repr, known)) or 'None'}{of}, found {paper!r}", "option-value", "paper"
        )
