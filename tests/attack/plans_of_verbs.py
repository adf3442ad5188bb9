"""The sound command of every verb, and the sound call of every module."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from .cases import World, plans
from .material import CORPORA, instances, module_rows

INSTANCES, LINES = "instances", "lines"
GOLD = ("gold", "gold lines")
FILES = (*GOLD, "corpus files")
BUILT = "--dataset hub/eraser --config movies"
RAW, ESNLI = "--data-dir raw/movies --split val", "--data-dir raw/esnli --split val"
EVERY = frozenset(
    {"spans", "soft", "sentences", "classes", "thresholds", "ids", "fields", "lines", "labels", "files", "any"}
)
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


SAVED = "--results p.jsonl --score-file s.json"
# fmt: off
command(f"score {RAW} {SAVED}", (INSTANCES, LINES, *FILES, "score options"), "score_raw", "s.json")
command(f"score {ESNLI} {SAVED}", (INSTANCES, LINES, *GOLD), "score_two_documents", "s.json")
command(f"score {BUILT} --split val {SAVED}", (INSTANCES, LINES, "folders"), "score_built", "s.json")
command(f"score {RAW} --results p.parquet --score-file s.json", ("parquet",), "score_parquet", "s.json")
# fmt: on
PAIR = "--results q.jsonl --results p.jsonl --n-resamples 10"
# fmt: off
command(f"compare {RAW} {PAIR}", (INSTANCES, LINES, *FILES, "compare options"), "compare_raw")
command(f"compare {BUILT} --split val {PAIR}", (INSTANCES, "folders"), "compare_built")
command(f"report {BUILT} --split val --predictions p.jsonl --resamples 10 --out r", (INSTANCES, LINES, "folders", "report options"),
        "report_of_one", "r")
command(f"highlight {BUILT} --split val --predictions p.jsonl", (INSTANCES, LINES, "folders", "highlight options"), "highlight_one",
        lenient=True)
command(f"board {BUILT} --split val --submission ours=p.jsonl --no-published --out b", (INSTANCES, LINES, "folders"),
        "board_of_submissions", "b", old="b=board")
# fmt: on
BUILD = "--out out --no-progress"
BUILT_IN, CACHED = "out/eraser out/.eraser", "out/eraser out/.eraser cache"
CACHE = {"ERASER_HUB_CACHE": "cache"}
# fmt: off
command(f"build eraser --source raw --config movies {BUILD}", (*FILES, "build options"), "build_movies",
    BUILT_IN, old="out=hub")
command(f"build eraser --source raw --config esnli {BUILD}", GOLD, "build_esnli", BUILT_IN)
command(f"build eraser --source archives --config movies {BUILD}", ("archives",), "build_archive", CACHED,
    environment=CACHE)
command(f"build eraser --config esnli {BUILD}", ("downloads",), "build_download", CACHED, environment=CACHE)
# fmt: on
for _name in ("bilingual_perturbation", "human_rationales"):
    command(
        f"build {_name} --source {_name} {BUILD}",
        ("raw bytes",),
        f"build_{_name}",
        f"out/{_name} out/.{_name}",
        config=_name,
    )
    command(
        f"export --dataset hub/{_name} --out raw_{_name}",
        ("other folders",),
        f"export_{_name}",
        f"raw_{_name}",
        config=_name,
    )
    command(
        f"check {_name} --dataset hub/{_name}",
        ("other folders",),
        f"check_{_name}",
        config=_name,
        verb_prints_errors=True,
    )
for _name in ("eraser --source raw --config movies", *(f"{one} --source {one}" for one in ("bilingual_perturbation", "human_rationales")),
              "metrics --config normalized_fidelity"):  # fmt: skip
    _folder = _name.split()[-1] if "metrics" in _name else _name.split()[0]
    command(
        f"build {_name} {BUILD}",
        ("strangers' folders",),
        f"build_over_a_strangers_{_folder}",
        f"out/{_folder} out/.{_folder}",
    )
# fmt: off
command(f"export {BUILT} --out exported", ("folders",), "export_movies", "exported")
# fmt: on
for _more in ("", "--leakage", "--viewer", "--format json"):
    command(
        f"check {BUILT} {_more}",
        ("folders",),
        f"check_built{_more.replace('-', '_').replace(' ', '_')}",
        verb_prints_errors=True,
    )
# fmt: off
command("check eraser --dataset raw --config movies", (*FILES, "check options"), "check_raw", verb_prints_errors=True)
# fmt: on
for _more in ("text", "json", "markdown"):
    command(f"stats {BUILT} --format {_more}", ("folders",), f"stats_{_more}")
# fmt: off
command("stats eraser --dataset raw --config movies", FILES, "stats_raw")
# fmt: on
EXPLAIN = f"explain {BUILT} --split val --model model --out e.jsonl --quiet"
for _more in ("occlusion", "random", "coefficients"):
    command(f"{EXPLAIN} --method {_more}", ("folders", "models", "explain options"), f"explain_{_more}", "e.jsonl")
# fmt: off
command(f"{EXPLAIN} --scores p.jsonl", (INSTANCES, LINES), "explain_scores", "e.jsonl")
command(f"train {BUILT} --model logistic-regression --out m", ("folders", "train options"), "train_built", "m")
command(f"ask {BUILT} --split val --endpoint http://127.0.0.1:9/v1 --model m --out a.jsonl --dry-run", ("folders",), "ask_dry")
command("reproduce --table eraser-2 --config movies --dataset hub/eraser --out rep", ("folders",), "reproduce_agreement", "rep",
        lenient=True)
command("publish --namespace org --dir hub --dataset eraser --dry-run", ("folders", "publish options"), "publish_dry",
        verb_prints_errors=True)
# fmt: on


@plans("board", "scores", "board options")
def board_of_scores(draw: random.Random, stock: Path) -> World:
    world = World(draw, files={"s.json": json.loads((stock / "scores.json").read_bytes())}, outputs=("b",))
    world.argv = ["board", "--scores", "ours@movies=s.json", "--no-published", "--out", "b"]
    if draw.random() < 0.3:  # an old board stands there
        world.links, world.copies = {"b": stock / "board"}, True
    return world


# --------------------------------------------------------------------------------------------------------------- modules
@cache
def module(name: str) -> Any:
    """The evaluate module, loaded from its file."""
    import evaluate

    return evaluate.load(str(Path(__file__).resolve().parents[2] / "metrics" / f"{name}.py"))


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
for _name in (
    "perturbation_map", "rationale_set_agreement", "normalized_fidelity", "annotator_agreement", "quote_faithfulness",
):  # fmt: skip
    call(_name, _name, "rows", "small rows", "objects", f"{_name} rows")
