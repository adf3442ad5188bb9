"""What is done to the rows of an import, and to the corpus.yaml of a corpus of one's own."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

from .annotations import hostile_place
from .cases import Expect, World, mutates, plans, puts
from .material import CORPORA, import_rows, instances
from .values import GONE, VALUES, also, any_place, odd, replace

ROWS = "rows.jsonl"
YAML = "own/corpus.yaml"
IMPORT = f"import --from {ROWS} --name mine --label label --id id --out c"


def import_plan(words: str, name: str, *kinds: str) -> None:
    """Register an import of the rows."""

    def plan(draw: random.Random, stock: Path) -> World:
        world = World(draw, files={ROWS: import_rows()}, argv=f"{IMPORT} {words}".split(), outputs=("c",), results=ROWS)
        world.parts = frozenset({"lines", "any"})
        return world

    plan.__name__ = name
    plans("import", *kinds)(plan)


import_plan("--tokens tokens --mask mask", "import_masks", "import rows", "import masks", "lines", "import options")
import_plan("--tokens tokens --mask mask --annotators majority", "import_majority", "import rows", "import masks")
import_plan("--text text --spans spans --query query", "import_spans", "import rows", "import spans")
import_plan("--text text --quotes quotes", "import_quotes", "import rows", "import quotes")

put, put_mask = partial(puts, "import rows", "any"), partial(puts, "import masks", "any")
put_span, put_quote = partial(puts, "import spans", "any"), partial(puts, "import quotes", "any")
put("odd_label", "wrong type", "*.label", None, "", [], {}, [None], [[]], 1.5, GONE)
put("odd_id", "wrong type", "*.id", None, [], {}, 1.5, True, ["a"], GONE)
put("labels_that_tie", "import counted", "*.label", ["good", "bad"], [1, 2], field="", words=("labels tie: 1",))
put("unknown_column", "anything", "*", also(zebra=1), also(Tokens=["x"]))
NO_TOKENS = [*odd(r"None 3 {} [''] ['a',None] ['a\nb'] [[['a']]] [1] GONE"), "a b", ["a b"]]
put_mask("odd_tokens", "wrong type", "*.tokens", *NO_TOKENS)
put_mask("odd_mask", "wrong type", "*.mask", "x y", *odd("3 {} [0] [[0],[1]] [[2]*99] ['*'] [[[0]]] GONE"))
put_mask("odd_mark", "wrong type", "*.mask.*.*", 2, -1, "1", None, 0.5, [], {}, field="mask")
put_mask(
    "nobody_marked", "import counted", "*.mask", None, [], "", [[], []], field="", words=("without a located mark",)
)
put_mask("one_text_again", "import counted", "*", lambda row: {**row, "tokens": ["same"], "mask": [1]}, field="")
put_span("odd_text", "wrong type", "*.text", None, 3, {}, [3], ["a", "b\nc"], GONE)
NO_SPANS = odd("3 'x' {'a':1} [[5,2]] [[0,999]] [['0',2]] [[0.5,2]] [[1,2,3]] [[-1,2]] [{'start':1}] GONE")
put_span("odd_span", "wrong type", "*.spans", *NO_SPANS)
put_span("odd_query", "wrong type", "*.query", None, {}, 1.5, [None], GONE)
put_span("half_a_word", "import counted", "*.spans", [[1, 3]], field="", words=("widened to whole tokens",))
put_quote("odd_quotes", "wrong type", "*.quotes", 3, {"a": 1}, [3], [[3]], [None, 3], GONE)
INVENTED = ("do not stand in the text, in any case: 1",)
put_quote("invented_quote", "import counted", "*.quotes", ["nobody wrote this"], field="", words=INVENTED)


@mutates("import rows", "any")
def any_values_in_rows(world: World) -> Expect:
    for _ in range(world.random.choice((1, 1, 3))):
        replace(world.random, *any_place(world.random, world.instances), [*VALUES, GONE])
    return Expect("anything")


@mutates("import rows", "any")
def an_id_twice(world: World) -> Expect:
    world.instances.append(world.random.choice(world.instances))
    return Expect("wrong type", ROWS, len(world.instances), "id")


# ---------------------------------------------------------------------------------------------------------- corpus.yaml
def own_plan(line: str, name: str, outputs: str, **more: Any) -> None:
    """Register a verb over a corpus of one's own in the folder ``own``."""

    def plan(draw: random.Random, stock: Path) -> World:
        files = {path.replace("movies/", "own/", 1): content for path, content in CORPORA["movies"].files().items()}
        files |= {"p.jsonl": instances("movies"), YAML: b"name: mine\nlabels: [NEG, POS]\nkd: 0.2\n"}
        world = World(draw, files=files, argv=line.split(), outputs=tuple(outputs.split()))
        for key, value in more.items():
            setattr(world, key, value)
        return world

    plan.__name__ = name
    plans(line.split()[0], "own corpus")(plan)


own_plan("build eraser --source own --out out --no-progress", "build_own", "out/eraser out/.eraser")
own_plan("score --data-dir own --split val --results p.jsonl --score-file s.json", "score_own", "s.json")
own_plan("check eraser --dataset own", "check_own", "", verb_prints_errors=True)
own_plan("stats eraser --dataset own", "stats_own", "")

MINE = b"name: mine\nlabels: [NEG, POS]\n"
KEYS = (b"colour: red", b"kd: 7", b"kd: .nan", b"language: no", b"license: [x]")
LABELS = (b"[]", b"[true, false]", b"[NEG, NEG]")
BAD = (
    *(b"", b"[", b"- a\n", b"3\n", b"\x00", b"\xff", b"[" * 3000, b"!!python/object/apply:os.system ['true']\n"),
    *(b"name: mine\n", b"labels: [NEG, POS]\n", b"name: mine\n" + MINE, b"name: &a mine\nlabels: [NEG, POS, *a]\n"),
    *(b"name: mine\nlabels: %s\n" % labels for labels in LABELS),
    *(MINE.replace(b"mine", name) for name in (b"movies", b"../mine")),
    *(MINE + key + b"\n" for key in KEYS),
)


@mutates("own corpus")
def bad_corpus_yaml(world: World) -> Expect:
    world.files[YAML] = world.random.choice(BAD)
    return Expect("corpus.yaml", YAML)


@mutates("own corpus")
def other_labels(world: World) -> Expect:
    world.files[YAML] = b"name: mine\nlabels: [NEG, other]\n"
    return Expect("raw annotations", field="classification")


@mutates("own corpus")
def corpus_yaml_that_is_no_file(world: World) -> Expect:
    hostile_place(world, YAML)
    return Expect("anything")


@mutates("own corpus")
def any_bytes_in_corpus_yaml(world: World) -> Expect:
    text, at = bytearray(world.files[YAML]), world.random.randrange(len(world.files[YAML]))
    text[at : at + world.random.choice((0, 1, 5))] = world.random.randbytes(world.random.choice((0, 1, 3)))
    world.files[YAML] = bytes(text)
    return Expect("anything")


@mutates("own corpus")
def spoilt_annotators(world: World) -> Expect:
    spoilt = (b"", b"PAR1", b"<html>", world.random.randbytes(300))
    world.files["own/annotators/mine.parquet"] = world.random.choice(spoilt)
    return Expect("damaged folder", words=("mine.parquet",)) if world.argv[0] == "build" else Expect("anything")
