"""A multi-label and a regression corpus through all verbs, with linear models and with heads of transformers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

import eraser_hub
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.conversion.importing.corpus import Columns, import_corpus
from eraser_hub.conversion.importing.sources import open_file
from eraser_hub.reports.board_lines import read_score_file
from eraser_hub.systems.label_heads import UNKNOWN, group_texts

from ..attribution.conftest import instance, word_tokenizer
from ..needs import needs
from ..refusals import refused

FILLER = ("the", "day", "was", "long", "we", "went", "home")
MOODS = {"anger": ("furious", "rage"), "fear": ("scared", "panic"), "joy": ("glad", "happy")}
MARKS = {"superb": 2.0, "good": 1.0, "poor": -1.0, "awful": -2.0}
WORDS = (*FILLER, *MARKS, *(word for words in MOODS.values() for word in words))


def mood(number: int) -> dict[str, Any]:
    """A text with a telling word for each of its labels, and a rationale for each."""
    random = np.random.default_rng(number)
    labels = [label for label in MOODS if random.random() < 0.5]
    words = [(random.choice(FILLER), "") for _ in range(8)]
    for label in labels:
        words.insert(int(random.integers(len(words))), (random.choice(MOODS[label]), label))
    why = [[int(owner == label) for _, owner in words] for label in labels]
    return {"id": f"m{number}", "tokens": [str(word) for word, _ in words], "labels": labels, "why": why}


def star(number: int) -> dict[str, Any]:
    """A text whose value is 2.5 plus what two of its words are worth."""
    random = np.random.default_rng(number)
    words = [str(word) for word in random.choice(FILLER, 8)]
    places = random.choice(8, 2, replace=False).tolist()
    for place in places:
        words[place] = str(random.choice(list(MARKS)))
    value = 2.5 + sum(MARKS[words[place]] / 2 for place in places)
    return {"id": f"s{number}", "tokens": words, "labels": value, "why": [int(at in places) for at in range(8)]}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both corpora, imported and built; their annotations lie beside the hub."""
    folder = tmp_path_factory.mktemp("tasks")
    for name, make in (("moods", mood), ("stars", star)):
        for split, numbers in (("train", range(60)), ("test", range(100, 116))):
            rows = "".join(json.dumps(make(number)) + "\n" for number in numbers)
            (folder / f"{name}-{split}.jsonl").write_text(rows, encoding="utf-8")
        sources = {split: open_file(folder / f"{name}-{split}.jsonl") for split in ("train", "test")}
        import_corpus(sources, name, Columns(("tokens",), ("why",), "labels", id="id"), folder / "corpora")
    eraser_hub.build("eraser", source=folder / "corpora", out=folder / "hub")
    assert not eraser_hub.check("eraser", dataset=folder / "hub" / "eraser").errors
    return folder / "hub" / "eraser"


@pytest.fixture(scope="module")
def model(hub: Path) -> Callable[[str], Path]:
    """Trains a linear model of a corpus, once."""

    def train(config: str) -> Path:
        out = hub.parent / config
        if not out.exists():
            name = {"moods": "logistic-regression", "stars": "ridge"}[config]
            said = eraser_hub.train(dataset=hub, config=config, model=name, out=out, eval_split="test").lines
            assert any(
                {"moods": "F1 of labels: micro 1.000", "stars": "Pearson's r 1.000"}[config] in one for one in said
            )
        return out

    return train


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random encoder of these words, whose head is to be trained."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.3}
    folder, tokenizer = tmp_path_factory.mktemp("base"), word_tokenizer(WORDS)
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def explain(hub: Path, config: str, model: Path, out: Path, **options: Any) -> list[dict[str, Any]]:
    eraser_hub.explain(model, hub, config=config, split="test", out=out, **options)
    return lines(out)


# -- several labels ---------------------------------------------------------------------------------------------------
def test_a_multi_label_corpus_is_scored_by_label_micro_and_macro(
    hub: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    found = explain(hub, "moods", model("moods"), tmp_path / "p.jsonl", method="coefficients")
    assert len(found) == 3 * 16 and {row["classification"] for row in found} == {"absent", "present"}
    wrong = [row["annotation_id"] for row in found[:5] if row["annotation_id"].endswith("joy")]
    for row in found:  # two wrong answers, so that averages differ
        if row["annotation_id"] in wrong:
            row["classification"] = {"absent": "present", "present": "absent"}[row["classification"]]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    scores = eraser_hub.score(path, dataset=hub, config="moods", split="test")
    gold = {one.id: one.label == "present" for one in open_split(hub, "moods", "test").instances()}
    said = {row["annotation_id"]: row["classification"] == "present" for row in found}
    f1 = {
        label: float(f1_score(*([side[name] for name in gold if name.endswith(label)] for side in (gold, said))))
        for label in MOODS
    }
    micro = f1_score([*gold.values()], [said[name] for name in gold])
    assert scores.number("label_micro_f1") == pytest.approx(micro, abs=1e-12)
    assert scores.number("label_macro_f1") == pytest.approx(np.mean([*f1.values()]), abs=1e-12)
    assert f1["joy"] < 1 == f1["fear"] and list(scores.by_class) == [*MOODS, "macro average"]
    for label, value in f1.items():
        assert scores.by_class[label]["label_micro_f1"] == pytest.approx(value, abs=1e-12)
        assert "label_macro_f1" not in scores.by_class[label]
    for key in ("token_macro_f1", "comprehensiveness", "label_micro_f1"):
        mean = np.mean([scores.by_class[label][key] for label in MOODS])
        assert scores.by_class["macro average"][key] == pytest.approx(mean, abs=1e-12)
    raw = eraser_hub.score(path, source=hub.parents[1] / "corpora" / "moods", split="test")
    assert raw.scores == scores.scores and raw.by_class == scores.by_class


def test_probabilities_of_each_label_or_of_one(model: Callable[[str], Path]) -> None:
    adapter = open_model(model("moods"))
    every = adapter.predict_proba(["so glad", "the rage"])
    assert every.shape == (2, 3) and every.argmax(axis=1).tolist() == [2, 0]  # anger, fear, joy
    one = adapter.predict_proba(["so glad", "the rage"], queries=["joy", "joy"])
    np.testing.assert_allclose(one, np.stack([1 - every[:, 2], every[:, 2]], axis=1), rtol=0, atol=1e-12)
    assert open_model(model("stars")).predict_proba(["superb film"]).shape == (1, 1)


def test_a_label_has_the_words_that_tell_it(hub: Path, model: Callable[[str], Path], tmp_path: Path) -> None:
    found = explain(hub, "moods", model("moods"), tmp_path / "p.jsonl", method="coefficients", kd=0.1)
    rows = {row["annotation_id"]: row for row in open_split(hub, "moods", "test").rows}
    present = [row for row in found if row["classification"] == "present"]
    assert len(present) > 10
    for row in present:
        gold = rows[row["annotation_id"]]
        tokens = gold["documents"][0]["text"].split()
        best = int(np.argmax(row["rationales"][0]["soft_rationale_predictions"]))
        assert tokens[best] in MOODS[gold["query"]]


@pytest.mark.parametrize("config", ["moods", "stars"])
def test_both_go_through_compare_report_and_board(
    config: str, hub: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{method}.jsonl" for method in ("coefficients", "random")]
    for path in paths:
        explain(hub, config, model(config), path, method=path.stem)
    compared = eraser_hub.compare(*map(str, paths), dataset=hub, config=config, split="test", n_resamples=200)
    keys = compared["comparisons"][0]["keys"]
    own = {"moods": "label_macro_f1", "stars": "mean_absolute_error"}[config]
    assert own in keys and keys["comprehensiveness_aopc"]["difference"] > 0
    written = eraser_hub.report(
        predictions=list(map(str, paths)), dataset=hub, config=config, split="test", out=tmp_path / "report"
    )
    page = Path(written.page).read_text(encoding="utf-8")
    assert {"moods": "Label F1 (macro)", "stars": "Mean absolute error"}[config] in page
    assert ("anger" in page) == (config == "moods") and ("Normalised sufficiency" in page) == (config == "moods")
    (first, _) = [read_score_file(path) for path in written.score_files]
    assert own in first.scores and all(key != "macro" for key in first.scores)


def test_a_classifier_that_reads_the_label_as_the_query_fits_too(hub: Path) -> None:
    class Reader:
        """p(present) is 0.9 where a word of the query's label stands in the text."""

        label_names = ("present", "absent")

        def predict_proba(self, token_lists: Any, queries: Any) -> Any:
            pairs = zip(token_lists, queries, strict=True)
            p = np.asarray([0.9 if {*MOODS[query[0]]} & {*tokens} else 0.1 for tokens, query in pairs])
            return np.stack([p, 1 - p], axis=1)

    adapter, split = open_model(Reader(), uses_query=True), open_split(hub, "moods", "test")
    align_labels(adapter, split.label_names, task=split.label_task)
    found = list(explain_instances(adapter, list(split.instances()), ExplainSettings(kd=0.1)))
    assert [row["classification"] for row in found] == [one.label for one in split.instances()]


# -- a number ---------------------------------------------------------------------------------------------------------
def test_a_regression_is_scored_in_the_units_of_its_value(
    hub: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "p.jsonl"
    found = explain(hub, "stars", model("stars"), path, random_draws=3)
    gold = {one.id: float(str(one.label)) for one in open_split(hub, "stars", "test").instances()}
    value = {row["annotation_id"]: row["classification_scores"]["value"] for row in found}
    errors = np.asarray([value[name] - gold[name] for name in gold])
    scores = eraser_hub.score(path, dataset=hub, config="stars", split="test")
    assert scores.number("mean_absolute_error") == pytest.approx(np.abs(errors).mean(), abs=1e-12)
    assert scores.number("root_mean_squared_error") == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-12)
    r = np.corrcoef([value[name] for name in gold], [*gold.values()])[0, 1]
    assert scores.number("pearson_r") == pytest.approx(r, abs=1e-9)
    for side in ("comprehensiveness", "sufficiency"):
        changes = [
            abs(row["classification_scores"]["value"] - row[f"{side}_classification_scores"]["value"]) for row in found
        ]
        assert scores.number(side) == pytest.approx(np.mean(changes), abs=1e-12)
        points = [
            [abs(row["classification_scores"]["value"] - one[f"{side}_classification_scores"]["value"]) for one in part]
            for row in found
            if (part := row["thresholded_scores"])
        ]
        assert scores.number(f"{side}_aopc") == pytest.approx(np.mean(points), abs=1e-12)
        assert scores.chance[side]["draws"] == 3
    absent = {"accuracy", "macro_f1", "comprehensiveness_entropy", "sufficiency_kl", "normalized_sufficiency"}
    assert not absent & scores.scores.keys()
    assert "|task:regression|change:absolute|" in scores.signature
    weights = [score for row in found for score in row["rationales"][0]["soft_rationale_predictions"]]
    assert min(weights) >= 0 and max(weights) > 0.5


def test_measures_of_probabilities_are_refused_of_a_regression(
    hub: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    for measure in ("aopc-bounds", "soft-scores", "infidelity", "tokens-to-flip"):
        with refused("unsupported", "regression", measure):
            explain(hub, "stars", model("stars"), tmp_path / "p.jsonl", measure=measure)


@pytest.mark.parametrize("value", ["Infinity", "1e999"])
def test_a_value_that_is_no_number_is_refused(value: str, hub: Path, tmp_path: Path) -> None:
    rows = [
        {"annotation_id": one.id, "rationales": [], "classification": "value", "classification_scores": {"value": 1.0}}
        for one in open_split(hub, "stars", "test").instances()
    ]
    path = tmp_path / "p.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text.replace("1.0", value, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=r"p\.jsonl:1"):
        eraser_hub.score(path, dataset=hub, config="stars", split="test")


def test_values_for_classes_are_refused(hub: Path, tmp_path: Path) -> None:
    rows = [
        {"annotation_id": one.id, "rationales": [], "classification": "value", "classification_scores": {"value": 1.0}}
        for one in open_split(hub, "moods", "test").instances()
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with refused("label-unknown", "absent, present", "'value'", file="p.jsonl"):
        eraser_hub.score(path, dataset=hub, config="moods", split="test")


# -- tasks that do not fit --------------------------------------------------------------------------------------------
def test_a_model_of_another_task_is_refused_with_both_names(
    hub: Path, model: Callable[[str], Path], tmp_path: Path
) -> None:
    with refused("unsupported", "multi-label classification (sigmoid)", "regression"):
        explain(hub, "stars", model("moods"), tmp_path / "p.jsonl")
    with refused("unsupported", "regression (one number)", "multi-label"):
        explain(hub, "moods", model("stars"), tmp_path / "p.jsonl")


def test_a_system_that_does_not_learn_a_task_is_refused_with_those_that_do(hub: Path, tmp_path: Path) -> None:
    with refused("unsupported", "ridge", "regression", "lei", argument="model"):
        eraser_hub.train(dataset=hub, config="stars", model="lei", out=tmp_path / "m")
    with refused("unsupported", "logistic-regression", "multi-label", "ridge", argument="model"):
        eraser_hub.train(dataset=hub, config="moods", model="ridge", out=tmp_path / "m")


def test_texts_are_grouped_and_what_nobody_says_is_unknown() -> None:
    rows = [instance("a b", "1", "joy"), instance("c", "2", "fear"), instance("a b", "3", "fear")]
    texts, gold = group_texts(rows, ["present", "absent", "absent"], ["fear", "joy"])
    assert [one.tokens for one in texts] == [["a", "b"], ["c"]]
    assert gold.tolist() == [[0, 1], [0, UNKNOWN]]
    with refused("label-unknown", "'awe'", instance="1"):
        group_texts([instance("a", "1", "awe")], ["present"], ["joy"])


# -- heads of transformers --------------------------------------------------------------------------------------------
def save_head(base: Path, out: Path, names: Iterable[str], problem_type: str | None) -> Any:
    import torch
    import transformers

    torch.manual_seed(1)
    labels = dict(enumerate(names))
    head = {"num_labels": len(labels), "id2label": labels, "label2id": {name: at for at, name in labels.items()}}
    network = transformers.AutoModelForSequenceClassification.from_pretrained(base, problem_type=problem_type, **head)
    torch.nn.init.normal_(network.classifier.weight, std=2.0)
    network.eval().save_pretrained(out)
    word_tokenizer(WORDS).save_pretrained(out)
    return network.double()


def run_network(network: Any, tokens: Iterable[str]) -> np.ndarray:
    import torch

    inputs = word_tokenizer(WORDS)(" ".join(tokens), return_tensors="pt")
    with torch.inference_mode():
        logits: np.ndarray = network(**inputs).logits[0].numpy()
    return logits


@needs("transformers", "torch")
@pytest.mark.parametrize("problem_type", ["multi_label_classification", None])
def test_a_sigmoid_head_gives_each_label_its_own_probability(
    problem_type: str | None, hub: Path, base: Path, tmp_path: Path
) -> None:
    network = save_head(base, tmp_path / "m", ["joy", "Anger", "fear", "awe"], problem_type)
    task = {} if problem_type else {"task": "multi-label"}
    found = explain(hub, "moods", tmp_path / "m", tmp_path / "p.jsonl", window=32, **task)
    rows = {row["annotation_id"]: row for row in open_split(hub, "moods", "test").rows}
    for row in found[:6]:
        gold = rows[row["annotation_id"]]
        tokens, column = gold["documents"][0]["text"].split(), ["joy", "anger", "fear"].index(gold["query"])
        p = 1 / (1 + np.exp(-run_network(network, tokens)[column]))
        assert row["classification_scores"] == pytest.approx({"absent": 1 - p, "present": p}, abs=1e-5)
        assert row["classification"] == ("present" if p > 0.5 else "absent")
        hard = row["rationales"][0]["hard_rationale_predictions"]
        places = {at for span in hard for at in range(span["start_token"], span["end_token"])}
        left = [token for at, token in enumerate(tokens) if at not in places]
        q = 1 / (1 + np.exp(-run_network(network, left)[column]))
        assert row["comprehensiveness_classification_scores"]["present"] == pytest.approx(q, abs=1e-5)
        drops = [
            abs(p - 1 / (1 + np.exp(-run_network(network, tokens[:at] + tokens[at + 1 :])[column])))
            for at in range(len(tokens))
        ]
        assert np.abs(row["rationales"][0]["soft_rationale_predictions"]) == pytest.approx(drops, abs=1e-5)


@pytest.mark.slow
@needs("transformers", "torch")
@pytest.mark.parametrize(
    ("config", "names", "problem_type"),
    [("moods", ["joy", "anger", "fear"], "multi_label_classification"), ("stars", ["value"], "regression")],
)
def test_methods_that_look_inside_follow_the_head(
    config: str, names: list[str], problem_type: str, hub: Path, base: Path, tmp_path: Path
) -> None:
    save_head(base, tmp_path / "m", names, problem_type)
    adapter = open_model(tmp_path / "m", device="cpu", precision="float32")
    instances = list(open_split(hub, config, "test").instances())[:3]
    for one in instances:
        encoded = adapter.encode(adapter.seen(one))
        targets = [1] if config == "moods" else [0]
        (whole,) = adapter.scores("integrated-gradients", [encoded], targets, 200)
        (slopes,) = adapter.scores("gradient", [encoded], targets, 1)
        assert np.isfinite(whole).all() and (slopes >= 0).all() and slopes.any()
        if config == "moods":  # the other class has the opposite contributions
            (other,) = adapter.scores("integrated-gradients", [encoded], [0], 200)
            np.testing.assert_allclose(whole, -other, rtol=0, atol=1e-6)
    notes = adapter.notes.take()
    assert notes.maxima["largest convergence delta"] < 2e-3
    for method in METHODS:
        if supports(adapter, method):
            found = explain(
                hub, config, tmp_path / "m", tmp_path / f"{method}.jsonl", method=method, limit=2, window=32
            )
            assert len(found) == 2


@pytest.mark.slow
@needs("transformers", "torch")
@pytest.mark.parametrize("config", ["moods", "stars"])
def test_an_encoder_is_fine_tuned_with_a_head_of_the_task(config: str, hub: Path, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    said = eraser_hub.train(
        dataset=hub,
        config=config,
        model=str(base),
        out=out,
        eval_split="test",
        epochs=50,
        learning_rate=0.01,
        batch_size=16,
    ).lines
    head = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert head["problem_type"] == {"moods": "multi_label_classification", "stars": "regression"}[config]
    assert list(head["id2label"].values()) == {"moods": [*MOODS], "stars": ["value"]}[config]
    found = explain(hub, config, out, tmp_path / "p.jsonl")
    assert len(found) == {"moods": 48, "stars": 16}[config]
    scores = eraser_hub.score(tmp_path / "p.jsonl", dataset=hub, config=config, split="test")
    if config == "moods":
        assert scores.number("label_micro_f1") > 0.8, said
    else:
        gold = [float(str(one.label)) for one in open_split(hub, config, "test").instances()]
        assert scores.number("root_mean_squared_error") < 0.7 * np.std(gold), said


@needs("transformers", "torch")
def test_a_head_of_another_task_is_refused_with_its_name(hub: Path, base: Path, tmp_path: Path) -> None:
    save_head(base, tmp_path / "softmax", ["0.5", "1.5"], None)
    with refused("unsupported", "classification (softmax)", "regression"):
        explain(hub, "stars", tmp_path / "softmax", tmp_path / "p.jsonl")
    save_head(base, tmp_path / "sigmoid", ["joy", "awe"], "multi_label_classification")
    with refused("label-unknown", "joy, awe", "'anger'"):
        explain(hub, "moods", tmp_path / "sigmoid", tmp_path / "p.jsonl")
    save_head(base, tmp_path / "unnamed", ["LABEL_0", "LABEL_1", "LABEL_2"], "multi_label_classification")
    with refused("option-missing", "`labels`"):
        explain(hub, "moods", tmp_path / "unnamed", tmp_path / "p.jsonl")
    named = explain(hub, "moods", tmp_path / "unnamed", tmp_path / "p.jsonl", labels=("joy", "fear", "anger"))
    assert len(named) == 48
    save_head(base, tmp_path / "two", ["a", "b"], "regression")
    with refused("unsupported", "regression", "2"):
        explain(hub, "stars", tmp_path / "two", tmp_path / "p.jsonl")
