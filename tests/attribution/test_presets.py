"""The papers' own settings, against what their authors' code gives (tests/golden/presets)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from eraser_hub.attribution import Instance, explain_instances, explain_texts, open_model
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.engine import _normalise_scores
from eraser_hub.attribution.erasure import Erased, count_tokens_at, draw_occluded_rationale, select_top
from eraser_hub.attribution.methods.integrated_gradients import make_path_points
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import RationaleSource, build_settings
from eraser_hub.metrics.fidelity import normalized_fidelity
from eraser_hub.papers.presets import PRESETS, load_preset

from ..refusals import refused
from .conftest import CountingModel, word_tokenizer

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "presets"
ERASER, WANG, CARTON = (
    json.loads((GOLDEN / f"{name}.json").read_text("utf-8")) for name in ("eraser_saliency", "wang2022", "carton2020")
)
EXACT = {"rel": 0, "abs": 1e-9}


class WordModel:
    """softmax(bias + sum of word weights)."""

    label_names = ("0", "1")

    def __init__(self, facts) -> None:
        self.weights, self.bias = facts["word_weights"], np.asarray(facts["bias"])

    def predict_proba(self, token_lists):
        none = np.zeros(len(self.bias))
        logits = np.stack([self.bias + sum((np.asarray(self.weights[t]) for t in one), none) for one in token_lists])
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exp / exp.sum(axis=1, keepdims=True)


# --- eraser ------------------------------------------------------------------------------------------------------


def baseline_network(facts):
    """The golden file's tiny classifier as a network: p = softmax(linear . sum_t a_t embedding_t + bias) in float64."""
    torch = pytest.importorskip("torch")

    def tensor(name):
        return torch.tensor(facts[name], dtype=torch.float64)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding.from_pretrained(tensor("embedding"))
            self.config = SimpleNamespace(
                id2label={n: str(n) for n in range(len(facts["bias"]))},
                pad_token_id=0,
                model_type="tiny",
                max_position_embeddings=64,
            )

        def get_input_embeddings(self):
            return self.embedding

        def forward(self, input_ids, attention_mask, **_):
            embedded, seen = self.embedding(input_ids), attention_mask.bool()
            logits = torch.zeros(seen.shape, dtype=torch.float64)
            if facts["kind"] == "additive":
                logits = torch.tanh(tensor("q") @ tensor("W") + embedded @ tensor("U")) @ tensor("v")
            attention = torch.softmax(logits.masked_fill(~seen, -torch.inf), dim=-1)
            pooled = (attention[..., None] * embedded).sum(dim=1)
            return SimpleNamespace(logits=pooled @ tensor("linear").T + tensor("bias"))

    return Network()


def baseline_case(case):
    """The case's model behind its adapter, and its instance: separators and query are always kept."""
    from tokenizers import processors

    from eraser_hub.attribution.transformers.sequence_model import SequenceModel

    ids, kept = case["token_ids"], case["always_keep"]
    words = [f"w{number}" for number in range(2, 64)]
    tokenizer = word_tokenizer(words, 64)
    backend = tokenizer.backend_tokenizer
    end = " w1" if ids[-1] == 1 else ""
    from tokenizers import models, pre_tokenizers

    backend.model = models.WordLevel(
        {"[PAD]": 0, "w1": 1, **{word: n + 2 for n, word in enumerate(words)}}, unk_token="w2"
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A{end}", pair="$A w1 $B:1 w1:1", special_tokens=[("w1", 1)]
    )
    documents, query = [[]], []
    for number, always in zip(ids, kept, strict=True):
        if number == 1:
            documents.append([])
        elif always:
            query.append(f"w{number}")
        else:
            documents[-1].append(f"w{number}")
    documents = tuple(tuple(one) for one in documents if one)
    model = SequenceModel(
        baseline_network(ERASER["models"][case["model"]]), tokenizer, uses_query=True, query_last=True
    )
    model.tokenizer.model_input_names = ["input_ids", "attention_mask"]
    align_labels(model, ())
    names = tuple(f"d{number}" for number in range(len(documents)))
    return model, Instance("case", tuple(query), names, documents)


def check_saliency(model, one, case, name):
    """What a method gives at each kd, against the golden file's values of the case."""
    expected, label = case["expected"][name], str(case["expected"]["predicted"])
    erasable = [score for score, kept in zip(expected["scores"], case["always_keep"], strict=True) if not kept]
    places = np.asarray([at for at, kept in enumerate(case["always_keep"]) if not kept])
    for kd in ERASER["kd"]:
        settings = build_settings("eraser", "", True, kd=kd, method=name.replace("_", "-"))
        assert list(settings.bins) == expected["aopc"]["thresholds"]
        (found,) = explain_instances(model, [one], settings)
        full = found["classification_scores"]
        assert list(full.values()) == pytest.approx(case["expected"]["probabilities"], **EXACT)
        assert found["classification"] == label
        scores = [score for part in found["rationales"] for score in part["soft_rationale_predictions"]]
        assert scores == pytest.approx(erasable, **EXACT)
        if expected["tie_at_a_cut"]:  # theirs is numpy's unstable sort
            continue
        hard = places[select_top(np.asarray(scores), kd, "last")]
        assert hard.tolist() == expected[str(kd)]["hard_rationale"]
        for measure in ("sufficiency", "comprehensiveness"):
            key = f"{measure}_classification_scores"
            assert full[label] - found[key][label] == pytest.approx(expected[str(kd)][measure], **EXACT)
            points = [full[label] - point[key][label] for point in found["thresholded_scores"]]
            assert points == pytest.approx(expected["aopc"][measure], **EXACT)


@pytest.mark.parametrize("case", ERASER["cases"])
def test_eraser_s_simple_gradient(case):
    assert build_settings("eraser", "", True).method == "simple-gradient"
    check_saliency(*baseline_case(case), case, "simple_gradient")


def test_the_last_of_equal_scores_wins():
    for case in ERASER["ties"]:
        hard = select_top(np.asarray(case["scores"]), case["kd"], load_preset("eraser").choices.ties)
        assert hard.tolist() == case["expected"]["hard_rationale"]


@pytest.mark.parametrize("number", range(len(ERASER["lime"]["cases"])))
def test_eraser_s_lime(number):
    case = ERASER["lime"]["cases"][number]
    expected, (model, one) = case["expected"], baseline_case(ERASER["cases"][case["case"]])
    size, settings = one.bounds[-1], build_settings("eraser", "", False, kd=case["kd"])
    assert settings.method == "lime" and settings.lime_samples == 1000
    assert min(size, 2 * count_tokens_at(settings.kd, size)) == expected["num_features"]
    kept = np.asarray(ERASER["cases"][case["case"]]["always_keep"])
    flat = np.cumsum(kept == 0) - 1  # the golden file counts separators too
    erased = [Erased(0, np.sort(flat[places]), keep=False) for places in case["dropped"]]
    found = Runner(model, "remove", 8).run([model.encode(one)], erased)
    np.testing.assert_allclose(found, expected["probabilities_of_dropped"], rtol=0, atol=1e-9)
    weights = np.zeros(len(expected["scores"]))
    for place, weight in case["weights"]:
        weights[place] = weight
    assert _normalise_scores(np.maximum(weights, 0), model.notes).tolist() == pytest.approx(expected["scores"], **EXACT)


@pytest.mark.parametrize("number", [2, 6, 9])
def test_lime_selects_features_as_the_package_does(number):
    lime_base = pytest.importorskip("lime.lime_base")
    from eraser_hub.attribution.methods.lime import _fit_weights

    random = np.random.default_rng(number)
    present = (random.random((200, 15)) < 0.6).astype(np.float32)
    present[0] = 1
    values = present @ random.normal(size=15) + random.normal(size=200) / 10
    distances = 100 * (1 - np.sqrt(present.mean(axis=1, dtype=np.float64)))
    package = lime_base.LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / 25**2)), random_state=0)
    _, weights, _, _ = package.explain_instance_with_data(present, values[:, None], distances, 0, number)
    expected = np.zeros(15)
    for feature, weight in weights:
        expected[feature] = max(weight, 0)
    # the package solves in float32
    assert _fit_weights(present, values, number).tolist() == pytest.approx(expected.tolist(), abs=1e-4)


# --- wang2022 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(WANG["cases"])))
def test_wang_s_rationales_and_what_is_left(number):
    case = WANG["cases"][number]
    settings = build_settings("wang2022", f"{case['task']}_{case['language']}", False, method=RationaleSource.SCORES)
    assert list(settings.kd_of_sequences or (settings.kd,)) == case["ratios"]
    model = open_model(WordModel(WANG["model"]))
    align_labels(model, ())
    instances = []
    for record in case["records"]:
        documents, scores = [], []
        for ranking in record["ranking"]:
            order = [place for place, _ in ranking]
            words = dict(map(tuple, ranking))
            documents.append(tuple(words[place] for place in range(len(order))))
            scores.append(tuple(float(len(order) - order.index(place)) for place in range(len(order))))
        names = tuple(f"sequence_{at}" for at in range(len(documents)))
        instances.append(Instance(str(record["id"]), (), names, tuple(documents), scores=tuple(scores)))
    for record, found in zip(
        case["records"], explain_instances(model, instances, settings, "perturbation"), strict=True
    ):
        expected = record["expected"]
        assert found["pred_label"] == expected["pred_label"]
        assert found["rationale"] == [sorted(part) for part in expected["rationale"]]
        words = [[word for _, word in ranking] for ranking in record["ranking"]]
        assert found["ranked_tokens"] == words and found["kd"] == case["ratios"]
        kept = [ranked[: len(part)] for ranked, part in zip(words, expected["rationale"], strict=True)]
        assert found["rationale_tokens"] == kept
        names = {"pred_proba": "p_full", "rationale_pred_proba": "p_rationale", "non_rationale_pred_proba": "p_rest"}
        for ours, theirs in names.items():
            assert found[ours] == pytest.approx(expected[theirs], **EXACT)


def test_a_word_is_one_feature_of_wang_s_lime():
    model, settings = CountingModel(), {"paper": "wang2022", "method": "lime(samples=200)"}
    (one,) = explain_texts(model, ["good the good film the good"], **settings)
    scores = one["rationales"][0]["soft_rationale_predictions"]
    assert scores[0] == scores[2] == scores[5] and scores[1] == scores[4]
    # in attribution a word goes wherever it occurs; the rationale alone is erased token by token
    assert not any(0 < tokens.count("good") < 3 for tokens in model.asked[:-12])


def test_wang_s_reading_comprehension():
    torch = pytest.importorskip("torch")
    from eraser_hub.attribution.transformers.gradients import compute_integrated_gradients, compute_question_attention

    facts = WANG["reading_comprehension"]
    weights = {name: torch.tensor(value, dtype=torch.float64) for name, value in facts["model"].items()}
    reader = SimpleNamespace(choices=load_preset("wang2022").choices, notes=SimpleNamespace(largest=lambda *_: None))
    for case in facts["cases"]:
        ids, base = (torch.tensor(case[name]) for name in ("token_ids", "baseline_ids"))
        position = weights["position"][: len(ids)]
        start, end = case["expected"]["start"], case["expected"]["end"]

        def probability(embedded, position=position, start=start, end=end):
            e = embedded + position
            h = torch.tanh(e @ weights["A"] + e.mean(dim=1, keepdim=True) @ weights["B"])
            return ((h @ weights["ws"])[:, start] + (h @ weights["we"])[:, end]) / 2

        embedded, from_pads = weights["embedding"][ids][None], weights["embedding"][base][None]
        scores = compute_integrated_gradients(reader, probability, embedded, case["steps"], 7, (), from_pads)[0].numpy()
        e = embedded[0] + position
        heads = [torch.softmax((e @ q) @ (e @ k).T, dim=-1) for q, k in zip(weights["Q"], weights["K"], strict=True)]
        first, last = case["context_positions"]
        passage = np.zeros(len(ids), dtype=bool)
        passage[first:last] = True
        attention = compute_question_attention(
            torch.stack(heads).mean(dim=0).numpy(), slice(*case["question_positions"]), passage
        )
        total = scores[passage].sum()
        integrated = case["expected"]["integrated_gradient"]
        assert total == pytest.approx(integrated["context_sum_before_normalising"], rel=1e-9)
        owner = np.concatenate(_words_of_pieces(case))  # here every piece lies inside one word
        assert len(owner) == len(case["pieces"])
        for row, expected in ((scores / total, integrated), (attention, case["expected"]["attention"])):
            words = np.bincount(owner, weights=row[passage], minlength=len(case["words"]))
            assert words.tolist() == pytest.approx(expected["word_scores"], rel=1e-9, abs=1e-9)


def _words_of_pieces(case):
    """The words that each piece lies in."""
    bounds, at = [], 0
    for word in case["words"]:
        at = case["text"].index(word, at)
        bounds.append((at, at + len(word)))
        at += len(word)
    return [
        [number for number, (low, high) in enumerate(bounds) if low < end and start < high]
        for start, end in case["pieces"]
    ]


@pytest.mark.parametrize("number", range(len(WANG["word_scores"])))
def test_a_word_s_score_is_the_sum_of_its_pieces(number):
    """A piece that lies in two words of theirs is two pieces of ours: words are cut singly. Each has half a score."""
    from eraser_hub.attribution.transformers.gradients import add_to_words

    case = WANG["word_scores"][number]
    shares = [
        (owner, score / len(words))
        for words, score in zip(_words_of_pieces(case), case["piece_scores"], strict=True)
        for owner in words
    ]
    owners, values = (np.asarray(column) for column in zip(*shares, strict=True))
    scores = np.zeros(len(case["words"]))
    passage, window = SimpleNamespace(owner=owners), SimpleNamespace(piece=np.arange(len(owners)))
    add_to_words(scores, passage, window, values)
    assert scores.tolist() == pytest.approx(case["expected"]["word_scores"], **EXACT)
    order = np.argsort(-scores.round(12), kind="stable")
    assert order.tolist() == case["expected"]["ranking"]


def test_the_trapezoid_rule_has_both_ends():
    points, shares = make_path_points(5, "trapezoid")
    assert points.tolist() == [0, 0.25, 0.5, 0.75, 1] and shares.tolist() == [0.125, 0.25, 0.25, 0.25, 0.125]


# --- carton2020 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(CARTON["cases"])))
def test_carton_s_human_rationales(number):
    case = CARTON["cases"][number]
    settings = build_settings("carton2020", "", False, fidelity_trials=0)
    assert settings.method == RationaleSource.SPANS and settings.scores == "human"
    model = open_model(WordModel(CARTON["model"]))
    align_labels(model, ())
    instances = []
    for at, (text, numbers) in enumerate(zip(case["texts"], case["rationales"], strict=True)):
        tokens = tuple(text.split(" ")) if text else ()
        flags = tuple(value >= 0.5 for value in [*numbers, *[0.0] * len(tokens)][: len(tokens)])
        instances.append(Instance(str(at), (), ("d",), (tokens,), rationale=(flags,)))
    names = {
        "classification_scores": "p_full",
        "sufficiency_classification_scores": "p_rationale",
        "comprehensiveness_classification_scores": "p_complement",
        "null_classification_scores": "p_empty",
    }
    for at, found in enumerate(explain_instances(model, instances, settings)):
        assert found["classification"] == str(case["expected"]["predicted"][at])
        for ours, theirs in names.items():
            assert found[ours][found["classification"]] == pytest.approx(case["expected"][theirs][at], **EXACT)


class Drawn:
    """A generator of their uniform numbers, turned round: their rate is the share that stays."""

    def __init__(self, numbers) -> None:
        self.numbers = numbers

    def random(self, size):
        assert size == len(self.numbers)
        return 1 - self.numbers


@pytest.mark.parametrize("number", range(len(CARTON["curves"])))
def test_carton_s_curves_by_their_own_draws(number):
    """One uniform number for each position of each rationale, by their seed; the scores of what is kept, by rate."""
    case, model = CARTON["curves"][number], open_model(WordModel(CARTON["model"]))
    align_labels(model, ())
    random, instances = np.random.RandomState(case["seed"]), []
    marked = [np.flatnonzero(np.asarray(numbers) >= 0.5) for numbers in case["rationales"]]
    for point in case["expected"]:
        for sample in point["samples"]:
            for text, numbers, hard, mask in zip(
                case["texts"], case["rationales"], marked, sample["rationales"], strict=True
            ):
                uniform = random.uniform(size=len(numbers))
                kept = draw_occluded_rationale(Drawn(uniform[hard]), hard, 1 - point["rate"], each=True)
                assert kept.tolist() == [at for at, flag in enumerate(mask) if flag == "1"]
                tokens = tuple(text.split(" ")) if text else ()
                flags = tuple(at in kept for at in range(len(tokens)))
                instances.append(Instance(str(len(instances)), (), ("d",), (tokens,), rationale=(flags,)))
    rows = explain_instances(model, instances, build_settings("carton2020", "", False, fidelity_trials=0))
    fields = (
        "classification_scores",
        *(f"{one}_classification_scores" for one in ("sufficiency", "comprehensiveness", "null")),
    )
    p = np.asarray([[row[field][row["classification"]] for field in fields] for row in rows])
    scores = normalized_fidelity(p)
    for key in ("sufficiency", "comprehensiveness", "normalized_sufficiency", "normalized_comprehensiveness"):
        means = scores[key].reshape(len(case["expected"]), len(case["expected"][0]["samples"]), -1).mean(axis=2)
        expected = [[sample[key] for sample in point["samples"]] for point in case["expected"]]
        np.testing.assert_allclose(means, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(means.mean(axis=1), [point[key] for point in case["expected"]], rtol=0, atol=1e-9)


def test_each_token_of_carton_s_curves_goes_by_itself():
    one = Instance("a", (), ("d",), (("good",) * 40,), rationale=((True,) * 40,))
    model = CountingModel()
    (found,) = explain_texts(model, [one], paper="carton2020", fidelity_rates=(0.0, 0.5, 1.0), fidelity_trials=6)
    kept = [
        round(np.log(p / (1 - p)))
        for p in (point["sufficiency_classification_scores"]["POS"] for point in found["occluded_scores"][6:12])
    ]
    assert len(set(kept)) > 1 and all(8 <= count <= 32 for count in kept)  # 20 are expected, of a binomial


# --- all of them -------------------------------------------------------------------------------------------------


def test_options_override_a_preset_and_the_signature_says_it():
    assert PRESETS == ("eraser", "wang2022", "carton2020")
    settings = build_settings("wang2022", "mrc_ch", True, steps=20, kd=0.5)
    assert (
        "paper:wang2022|method:integrated-gradients|kd:0.5|" in settings.signature()
        and "steps:20" in settings.signature()
    )
    assert build_settings("wang2022", "mrc_ch", True).steps == 300
    lime = build_settings("eraser", "movies", False, bins=(), lime_samples=50).signature()
    assert "paper:eraser|method:lime" in lime and "lime:N50,K0" in lime and "bins" not in lime and "ties:last" in lime
    assert (
        build_settings("carton2020", "movies", True, method="random")
        .signature()
        .startswith("paper:carton2020|method:random")
    )
    with refused("paper", "eraser, wang2022, carton2020", "'lei2016'"):
        build_settings("lei2016", "", True)
    with refused(instance="0"):
        explain_texts(CountingModel(), ["a text"], paper="carton2020")


# --- training ----------------------------------------------------------------------------------------------------


class Pieces:
    """A tokenizer that gives the golden file's pieces, whatever the text."""

    def __init__(self, rows) -> None:
        self.rows = rows

    def __call__(self, texts, padding, truncation, max_length):
        assert padding == "max_length" and truncation and len(texts) == len(self.rows)
        return {"input_ids": self.rows}

    def convert_ids_to_tokens(self, row):
        return row


def test_carton_s_features_are_tf_idf_of_padded_pieces():
    from eraser_hub.attribution.adapters.scikit_learn import Subwords
    from eraser_hub.systems.baselines import fit_carton
    from eraser_hub.systems.system import SYSTEMS

    pieces, expected = CARTON["features"]["pieces"], CARTON["features"]["expected"]
    instances = [Instance(str(n), (), ("d",), (("a",),)) for n in range(len(pieces))]
    examples = instances, ["N", "P"] * (len(pieces) // 2)
    subwords, lines = Subwords(Pieces(pieces), len(pieces[0])), []
    model, facts = fit_carton(SYSTEMS["logistic-regression"](), examples, examples, subwords, 1, lines.append)
    assert "_stop_words_id" not in vars(model[0])  # a place in memory: no two files would be equal
    assert model[0].get_feature_names_out().tolist() == expected["vocabulary"]
    np.testing.assert_allclose(model[0].idf_, expected["idf"], rtol=0, atol=1e-9)
    matrix = model[0].transform(subwords([one.id for one in instances])).toarray()
    np.testing.assert_allclose(matrix, expected["matrix"], rtol=0, atol=1e-9)
    shares = [float(line.split(": ")[1].split(" ")[0]) for line in lines]
    sizes = load_preset("carton2020").training["C"]
    assert len(shares) == 7 and facts["size"] == sizes[shares.index(max(shares))]  # the first of the best
    _, facts = fit_carton(SYSTEMS["random-forest"](), examples, examples, subwords, 1, lines.append)
    assert facts["size"] in (4, 16, 64, 256, 512)


@pytest.fixture
def tokenizer_folder(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "pieces")
    return str(tmp_path / "pieces")


@pytest.mark.slow
def test_a_model_of_carton_s_is_trained_and_explained(hub, tokenizer_folder, tmp_path, monkeypatch):
    from eraser_hub.attribution.config import ExplainConfig
    from eraser_hub.attribution.run import explain

    from .test_runs import call

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    words = (*f"--dataset {hub} --config movies --out {tmp_path / 'm'}".split(),)
    model = f"logistic-regression(tokenizer={tokenizer_folder})"
    done = call(*words, "--model", model, "--paper", "carton2020", verb="train")
    assert done.exit_code == 0, done.output
    assert tokenizer_folder in done.stderr and "roberta-base" in done.stderr
    assert done.stderr.count("on the validation split") == 7 and "no-rationale: accuracy" in done.stdout
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["paper"] == "carton2020" and facts["longest"] == 512
    out = tmp_path / "p.jsonl"
    explained = (*f"--dataset {hub} --config movies --split val --model {tmp_path / 'm'}".split(),)
    done = call(*explained, "--paper", "carton2020", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "paper:carton2020|rationales:human|" in done.stdout and "not trained with" not in done.stdout
    assert len(json.loads(out.read_text().splitlines()[0])["occluded_scores"]) == 21
    done = call(*explained, "--paper", "eraser", "--out", str(tmp_path / "e.jsonl"))
    assert "not trained with `paper` eraser" in done.stdout
    assert "paper:eraser|method:lime|kd:0.1|" in done.stdout and "set aopc_thresholds to 0.003 0.01" in done.stdout
    for paper, more, mention in (
        ("carton2020", ("--model", f"logistic-regression(tokenizer={tmp_path})"), "tokenizer"),
        ("carton2020", ("--model", model, "--eval-split", ""), "eval_split"),
        ("eraser", ("--model", model), "tokenizer"),
    ):
        done = call(*words, "--paper", paper, *more, verb="train")
        assert done.exit_code in (1, 2) and mention in done.output.replace("-", "_"), done.output
    job = ExplainConfig(str(hub), "movies", "val", str(tmp_path / "m"), limit=2)
    with refused("`method` coefficients", "LogisticRegression"):
        explain(job, build_settings("", "", False, method="coefficients"), tmp_path / "c.jsonl")


def test_eraser_s_networks_read_the_document_before_the_query(network, tokenizer):
    from eraser_hub.attribution.transformers.sequence_model import SequenceModel

    one = Instance("a", ("Is", "it", "good", "?"), ("d",), (("the", "film", "bad") * 12,))
    model = SequenceModel(network(), tokenizer, uses_query=True, query_last=True)
    windows = model.encode(one).whole()
    query = tokenizer.convert_tokens_to_ids(list(one.query))
    assert len(windows) > 1
    for window in windows:  # every window ends with the query
        assert len(window.code) <= model.window and window.ids[-5:-1].tolist() == query
        assert window.types[-2] == 1 and window.types[1] == 0
    pair = tokenizer(list(one.documents[0][:4]), list(one.query), is_split_into_words=True)
    short = model.encode(Instance("b", one.query, ("d",), (one.documents[0][:4],))).whole()
    assert short[0].ids.tolist() == pair["input_ids"] and short[0].types.tolist() == pair["token_type_ids"]
