"""The sound command of every verb, and the sound call of every module."""

from __future__ import annotations

import copy
import json
import random
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .cases import World, plans
from .material import CORPORA, instances, module_rows

INSTANCES = "instances"
INPUT = (INSTANCES, "lines")
GOLD = ("gold", "gold lines")
FILES = (*GOLD, "corpus files")
BUILT = "--dataset hub/eraser --config movies"
VAL, ONE = f"{BUILT} --split val", f"{BUILT} --split val --predictions p.jsonl"
RAW, ESNLI = "--data-dir raw/movies --split val", "--data-dir raw/esnli --split val"
_ALL = "spans soft sentences classes thresholds ids fields lines labels files any"
EVERY = frozenset(_ALL.split())
PARTS = {
    "agreement": EVERY - {"classes", "thresholds", "labels", "files"},
    "faithfulness": EVERY - {"spans", "soft", "sentences", "labels", "files"},
    "explain_scores": frozenset({"soft", "lines"}),
}


def world_of(draw: random.Random, stock: Path, argv: list[str]) -> World:
    """A world with everything that the words of a command line name."""
    world = World(draw, argv=argv)
    text = " ".join(argv)
    config = "esnli" if "esnli" in text else "movies"
    if "raw" in text:
        world.files = {f"raw/{path}": content for path, content in CORPORA[config].files().items()}
        world.gold = f"raw/{config}/val.jsonl"
    if "p.jsonl" in text or "p.parquet" in text:
        world.files["p.jsonl"], world.results = instances(config), "p.jsonl"
    if "q.jsonl" in text:
        world.files["q.jsonl"] = instances(config, seed=1)
    for name in ("hub", "model", "bilingual_perturbation", "human_rationales"):
        if name in {word.split("/")[0] for word in argv[2:]}:
            world.links[name] = stock / name
    return world


def command(line: str, kinds: tuple[str, ...], name: str, outputs: str = "", **more: Any) -> None:
    """Register a plan: a command line, the kinds of mutators that fit, what it writes, further attributes of the world.

    ``old``: what stands in the output's place in a third of the cases, a path of the stock.
    """
    old = more.pop("old", "")

    def plan(draw: random.Random, stock: Path) -> World:
        world = world_of(draw, stock, line.split())
        world.outputs = tuple(outputs.split())
        world.parts = PARTS.get(name, EVERY)
        for key, value in more.items():
            setattr(world, key, copy.copy(value))
        if old and draw.random() < 0.3:
            world.links[old.split("=")[0]], world.copies = stock / old.split("=")[1], True
        return world

    plan.__name__ = name
    plans(line.split()[0], *kinds)(plan)


def strangers(line: str, name: str) -> None:
    """Register a build where a stranger's folder stands."""
    command(line, ("strangers' folders",), f"build_over_a_strangers_{name}", f"out/{name} out/.{name}")


SMALL_DATASETS, OTHER = ("bilingual_perturbation", "human_rationales"), ("other folders",)
SAVED = "--results p.jsonl --score-file s.json"
command(f"score {RAW} {SAVED}", (*INPUT, *FILES, "score options"), "score_raw", "s.json")
command(f"score {ESNLI} {SAVED}", (*INPUT, *GOLD), "score_two_documents", "s.json")
command(f"score {VAL} {SAVED}", (*INPUT, "folders"), "score_built", "s.json")
command(f"score {RAW} --results p.parquet --score-file s.json", ("parquet",), "score_parquet", "s.json")
PAIR = "--results q.jsonl --results p.jsonl --n-resamples 10"
command(f"compare {RAW} {PAIR}", (*INPUT, *FILES, "compare options"), "compare_raw")
command(f"compare {VAL} {PAIR}", (INSTANCES, "folders"), "compare_built")
command(f"report {ONE} --resamples 10 --out r", (*INPUT, "folders", "report options"), "report_of_one", "r")
command(f"highlight {ONE}", (*INPUT, "folders", "highlight options"), "highlight_one", lenient=True)
SUBMITTED = f"board {VAL} --submission ours=p.jsonl --no-published --out b"
command(SUBMITTED, (*INPUT, "folders"), "board_of_submissions", "b", old="b=board")
BUILD = "--out out --no-progress"
BUILT_IN, CACHED = "out/eraser out/.eraser", "out/eraser out/.eraser cache"
CACHE = {"ERASER_HUB_CACHE": "cache"}
MOVIES = f"build eraser --source raw --config movies {BUILD}"
command(MOVIES, (*FILES, "build options"), "build_movies", BUILT_IN, old="out=hub")
command(MOVIES.replace("movies", "esnli"), GOLD, "build_esnli", BUILT_IN)
command(MOVIES.replace("raw", "archives"), ("archives",), "build_archive", CACHED, environment=CACHE)
command(f"build eraser --config esnli {BUILD}", ("downloads",), "build_download", CACHED, environment=CACHE)
for _name in SMALL_DATASETS:
    _own, _outputs = partial(command, config=_name), f"out/{_name} out/.{_name}"
    _own(f"build {_name} --source {_name} {BUILD}", ("raw bytes",), f"build_{_name}", _outputs)
    _own(f"export --dataset hub/{_name} --out raw_{_name}", OTHER, f"export_{_name}", f"raw_{_name}")
    _own(f"check {_name} --dataset hub/{_name}", OTHER, f"check_{_name}", verb_prints_errors=True)
strangers(MOVIES, "eraser")
for _name in SMALL_DATASETS:
    strangers(f"build {_name} --source {_name} {BUILD}", _name)
strangers(f"build metrics --config normalized_fidelity {BUILD}", "normalized_fidelity")
command(f"export {BUILT} --out exported", ("folders",), "export_movies", "exported")
for _more in ("", "--leakage", "--viewer", "--format json"):
    _name = f"check_built{_more.replace('-', '_').replace(' ', '_')}"
    command(f"check {BUILT} {_more}", ("folders",), _name, verb_prints_errors=True)
for _line, _written in (
    (f"score {VAL} --predictions p.jsonl --out s.json", "s.json"),
    (f"compare {VAL} --predictions p.jsonl --predictions q.jsonl --resamples 10 --out c.json", "c.json"),
    (f"highlight {VAL} --predictions p.jsonl --out h.html", "h.html"),
    (f"report {ONE} --resamples 10 --out r", "r"),
    (f"explain {VAL} --model model --out e.jsonl --quiet --scores p.jsonl", "e.jsonl"),
    (SUBMITTED, "b"),
):
    command(_line, ("outputs",), f"{_line.split()[0]}_onto", _written)
command("check --dataset hub/eraser", ("semantic",), "check_changed", verb_prints_errors=True)
for _line, _written in (
    (f"score {VAL} --predictions p.jsonl --out s.json", "s.json"),
    (f"report {ONE} --resamples 10 --out r", "r"),
    (f"stats {BUILT}", ""),
    (f"check {BUILT}", ""),
    (f"export {BUILT} --out exported", "exported"),
    (f"explain {VAL} --model model --out e.jsonl --quiet --method random", "e.jsonl"),
    (f"train {BUILT} --model logistic-regression --out m", "m"),
):
    command(_line, ("versions",), f"{_line.split()[0]}_other_version", _written, verb_prints_errors="check" in _line)
for _line, _written in (
    (f"train {BUILT} --model logistic-regression --out m", "m"),
    (f"export {BUILT} --out exported", "exported/movies"),
):
    command(_line, ("strangers' folders",), f"{_line.split()[0]}_over_a_strangers_folder", _written)
RAW_MOVIES = "eraser --dataset raw --config movies"
command(f"check {RAW_MOVIES}", (*FILES, "check options"), "check_raw", verb_prints_errors=True)
for _more in ("text", "json", "markdown"):
    command(f"stats {BUILT} --format {_more}", ("folders",), f"stats_{_more}")
command(f"stats {RAW_MOVIES}", FILES, "stats_raw")
EXPLAIN = f"explain {VAL} --model model --out e.jsonl --quiet"
for _more in ("occlusion", "random", "coefficients"):
    command(f"{EXPLAIN} --method {_more}", ("folders", "models", "explain options"), f"explain_{_more}", "e.jsonl")
command(f"{EXPLAIN} --scores p.jsonl", INPUT, "explain_scores", "e.jsonl")
TRAIN, ASK = "--model logistic-regression --out m", "--endpoint http://127.0.0.1:9/v1 --model m --out a.jsonl --dry-run"
command(f"train {BUILT} {TRAIN}", ("folders", "train options"), "train_built", "m")
command(f"ask {VAL} {ASK}", ("folders",), "ask_dry")


@plans("reproduce", *INPUT, "folders")
def reproduce_agreement(draw: random.Random, stock: Path) -> World:
    """Two annotators' marks, of which those outside a text are cut and counted; the run keeps its settings."""
    line = "experiment reproduce --table eraser-2 --config movies --dataset hub/eraser --source source --out rep"
    world = world_of(draw, stock, line.split())
    world.files = {f"source/movies/human_performance_{at}.jsonl": instances("movies", seed=at) for at in (1, 2)}
    world.results, world.outputs = "source/movies/human_performance_1.jsonl", ("rep",)
    world.parts, world.partial, world.lenient = frozenset({"spans", "lines"}), True, True
    return world


PUBLISH = "publish --namespace org --dir hub --dataset eraser --dry-run"
command(PUBLISH, ("folders", "publish options"), "publish_dry", verb_prints_errors=True)


@plans("board", "scores", "board options")
def board_of_scores(draw: random.Random, stock: Path) -> World:
    world = World(draw, files={"s.json": json.loads((stock / "scores.json").read_bytes())}, outputs=("b",))
    world.argv = ["board", "--scores", "ours@movies=s.json", "--no-published", "--out", "b"]
    if draw.random() < 0.3:  # an old board stands there
        world.links, world.copies = {"b": stock / "board"}, True
    return world


# -------------------------------------------------------------------------------------------------------------- modules
@cache
def module(name: str) -> Any:
    """The evaluate module, loaded from its Space."""
    import evaluate

    from eraser_hub.publishing.spaces import build_metrics

    with TemporaryDirectory() as folder:
        return evaluate.load(str(*build_metrics(folder, [name])))


def call(name: str, plan_name: str, *kinds: str) -> None:
    """Register the sound call of a module."""

    def plan(draw: random.Random, stock: Path) -> World:
        predictions, references = module_rows(name)
        world = World(draw, call=module(name).compute, predictions=predictions, references=references)
        world.results, world.gold, world.parts = "predictions", "references", PARTS.get(plan_name, EVERY)
        return world

    plan.__name__ = plan_name
    plans(name, *kinds)(plan)


call("eraser_agreement", "agreement", INSTANCES, "gold", "rows", "objects")
call("eraser_faithfulness", "faithfulness", INSTANCES, "rows", "objects")
SMALL = (
    "perturbation_map rationale_set_agreement normalized_fidelity annotator_agreement quote_faithfulness "
    "reasoning_faithfulness"
)
for _name in SMALL.split():
    call(_name, _name, "rows", "small rows", "objects", f"{_name} rows")
