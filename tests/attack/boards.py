"""What is done to score files, and options out of range for every verb."""

from __future__ import annotations

import json
import re
import shlex

from .cases import Expect, World, mutates, puts
from .values import GONE, VALUES, any_place, nested, odd, replace

SCORES = "s.json"


OTHERS = odd("'x' '0.5' [] {} True [0.5] {'a':1}")
puts("scores", "", "score_of_another_type", "damaged score file", "token_soft_metrics.*", *OTHERS, field="")


@mutates("scores")
def no_number(world: World) -> Expect:
    """NaN, an infinite or an immense number where a score stands."""
    text = json.dumps(world.files[SCORES])
    number = world.random.choice(("NaN", "Infinity", "-Infinity", "1e400", "1" + "0" * 400, "-1e999"))
    world.files[SCORES] = _replace_a_float(world, text, number).encode()
    return Expect("damaged score file", SCORES)


def _replace_a_float(world: World, text: str, number: str) -> str:
    places = [match.span() for match in re.finditer(r"(?<=: )\d\.\d+", text.split('"signature"')[0])]
    start, end = world.random.choice(places)
    return text[:start] + number + text[end:]


@mutates("scores")
def no_signature(world: World) -> Expect:
    for name in [key for key in world.files[SCORES] if "signature" in key]:
        del world.files[SCORES][name]
    return Expect("damaged score file", SCORES)


@mutates("scores")
def no_score_file(world: World) -> Expect:
    plain = (b"", b"[]", b"3", b"null", b'"x"', b"{", b"\xff", b"{}")
    odd = (*plain, json.dumps(nested(600)).encode(), b"[" * 100_000, b"[{}]")
    world.files[SCORES] = world.random.choice(odd)
    return Expect("damaged score file", SCORES)


@mutates("scores")
def any_value_in_scores(world: World) -> Expect:
    replace(world.random, *any_place(world.random, world.files[SCORES]), [*VALUES, GONE])
    return Expect("anything")


@mutates("scores")
def key_of_scores_twice(world: World) -> Expect:
    text = json.dumps(world.files[SCORES])
    world.files[SCORES] = ('{"signature": "x", ' + text[1:]).encode()
    return Expect("key twice", SCORES)


@mutates("scores")
def name_of_a_system(world: World) -> Expect:
    name = world.random.choice(("<script>", "\x1b[31m", "a" * 5000, "", "@", "é@", "x@y@z", "\ud800"))
    world.argv[world.argv.index("--scores") + 1] = f"{name}={SCORES}"
    return Expect("anything")


# -------------------------------------------------------------------------------------------------------------- options
def bad_values(text: str) -> list[tuple[str, list[str]]]:
    """Each option in the text, and the values that follow it there, quoted as in a shell."""
    options: list[tuple[str, list[str]]] = []
    for word in shlex.split(text):
        if word.startswith("--"):
            options.append((word, []))
        else:
            options[-1][1].append(word)
    return options


LONG, ESCAPE = "a" * 300, "\x1b[31m"
OUT_OF_RANGE = {
    "score": bad_values(f"""
        --iou-thresholds nan -1 0 1.1 x inf '' --aopc-thresholds nan -1 2 x --auprc-policy none ''
        --random-baseline -1 x --sentence-threshold x nan --confidence-level 0 1 nan x -3 --ci-method none --by nowhere
        --split '' nowhere ../val 'a{ESCAPE}' {LONG} 'va*' --config nowhere '' ../x
        --annotations nowhere.jsonl . p.jsonl --results nowhere . raw '' --num-proc -1
        --data-dir nowhere . p.jsonl '' --score-file . raw p.jsonl/x /proc/x/y ''"""),
    "compare": bad_values("""
        --iou-thresholds nan 0 x --n-resamples 0 -1 x --seed -1 x --format xml --confidence-level 0 1 nan
        --split '' nowhere ../val --results p.jsonl nowhere . --config nowhere --annotations nowhere ."""),
    "report": bad_values("""
        --split '' nowhere ../val test --config nowhere '' ../x esnli --resamples 0 -1 x --confidence-level 0 1 nan
        --predictions nowhere . x=nowhere =p.jsonl --seed x -1 --baseline nowhere . --out p.jsonl /proc/x p.jsonl/x
        --dataset nowhere . p.jsonl"""),
    "highlight": bad_values(f"""
        --split '' nowhere ../val --config nowhere '' ../x --id nowhere '' '{ESCAPE}' {LONG * 10}
        --predictions nowhere . --html . p.jsonl/x /proc/x/y --dataset nowhere . p.jsonl"""),
    "board": bad_values("""
        --scores nowhere . x=nowhere '' --submission x=nowhere p '' --out s.json /proc/x s.json/x
        --space s.json /proc/x"""),
    "build": bad_values("""
        --config nowhere '' ../x --source nowhere '' raw/movies/val.jsonl --num-proc 0 -1 x
        --out raw/movies/val.jsonl /proc/x raw/movies/val.jsonl/x"""),
    "import": bad_values("""
        --name ../x a/b '' movies --label nowhere '' --tokens nowhere '' --mask nowhere '' --id nowhere --query nowhere
        --annotators none '' --offsets none tokens --tokenizer nowhere --from nowhere nowhere.jsonl ''
        --out rows.jsonl /proc/x rows.jsonl/x --split x = ../x=rows.jsonl test=nowhere.jsonl train=rows.jsonl"""),
    "check": bad_values("--config nowhere '' ../x --dataset nowhere '' --format xml ''"),
    "explain": bad_values("""
        --method none '' attention --kd -1 2 nan x --bins x -1 0 200 nan inf --erase none mask --draws 0 x
        --labels A,B,C NEG NEG,NEG , --model nowhere . '' --split '' nowhere --config nowhere ''
        --out e.txt . hub /proc/x/y.jsonl hub/x/y.jsonl --task none --engine none --limit 0 -1 --seed -1 x
        --fidelity-rates x -1 300 --device nowhere --window 0 --precision float3 --random-kind none"""),
    "train": bad_values("""
        --model nowhere '' . --split '' nowhere --eval-split nowhere --config nowhere '' --train-on none --features none
        --limit 0 -1 1 --seed -1 x --task none --out /proc/x hub hub/eraser/README.md"""),
    "publish": bad_values(f"""
        --namespace '' ../x 'a b' a--b '{ESCAPE}' --dir nowhere '' --dataset nowhere ../x '' --metric nowhere ../x
        --revision '' .. 'a b'"""),
}
# what the policy leaves open: a warning, a default, or an error will do
OPEN = {
    ("--seed", "-1"),
    ("--sentence-threshold", "nan"),
    ("--device", "nowhere"),
    ("--erase", "mask"),
    ("--scores", ""),
    ("--out", "hub/x/y.jsonl"),  # of `explain`: a folder that is not there is made
}


def _register(verb: str) -> None:
    @mutates(f"{verb} options")
    def option_out_of_range(world: World) -> Expect:
        name, bad = world.random.choice(OUT_OF_RANGE[verb])
        value = world.random.choice(bad)
        if name in world.argv and name not in ("--results", "--predictions", "--iou-thresholds", "--scores"):
            world.argv[world.argv.index(name) + 1] = value
        else:
            world.argv += [name, value]
        open_row = (
            value == ""
            or (name, value) in OPEN
            or name in ("--config", "--dataset", "--dir", "--erase", "--fidelity-rates", "--bins")
        )
        return Expect("anything" if open_row else "usage")

    @mutates(f"{verb} options")
    def unknown_option(world: World) -> Expect:
        world.argv += world.random.choice((["--nowhere"], ["stranger"], ["--out"], ["-x"], ["--", "x", "y"]))
        return Expect("anything" if verb == "report" else "usage")


for _verb in OUT_OF_RANGE:
    _register(_verb)
