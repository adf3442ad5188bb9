"""What is done to predictions (ERASER instances), in a file or as Python rows."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from .cases import Expect, World, mutates, puts
from .values import GONE, VALUES, any_place, misspelt, nested, odd, replace

SPANS, SOFT, SENTENCES = "hard_rationale_predictions", "soft_rationale_predictions", "soft_sentence_predictions"
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
PROBABILITIES = "|".join(("classification_scores", *ERASED))
HARD, SCORED, LINE_SCORES = f"rationales.*.{SPANS}", f"rationales.*.{SOFT}", f"*.rationales.*.{SENTENCES}"
put = partial(puts, "instances")


def span(start: Any, end: Any) -> dict[str, Any]:
    return {"start_token": start, "end_token": end}


def without(name: str, put_there: Any = GONE) -> Callable[[list[Any]], list[Any]]:
    """A change of rationales: the field is gone, or has another value."""

    def change(rationales: list[Any]) -> list[Any]:
        for rationale in rationales:
            rationale.pop(name)
            if put_there is not GONE:
                rationale[name] = copy.deepcopy(put_there)
        return rationales

    return change


def normalised(change: Callable[[str, dict[str, float]], Any]) -> Callable[[Any], Any]:
    """A change of an instance's three distributions, which knows the label."""

    def spoil(instance: Any) -> Any:
        name = PROBABILITIES.split("|")[len(instance["annotation_id"]) % 3]
        return {**instance, name: change(instance["classification"], instance[name])}

    return spoil


# ---------------------------------------------------------------------------------------------------------- spans, soft
ODD_SPANS = odd("(-1,1) (2,1) (1,1) (0,10_000) (0,1.5) (True,2) ('0','1') (0,2**70) (None,1) (nan,2)")
NO_SPANS = odd("'0-2' 3 {'start_token':0,'end_token':1} [[0,1]] [3] [None] [{}] [{'start_token':0}]")
put_spans = partial(put, "spans")
put_spans("odd_span", "bad spans", f"*.{HARD}", *([span(*each)] for each in ODD_SPANS))
put_spans("overlapping_spans", "bad spans", f"*.{HARD}", [span(0, 2), span(1, 3)], [span(0, 3), span(1, 2)])
put_spans("shape_of_spans", "bad spans", f"*.{HARD}", *NO_SPANS)
put_spans("same_span_twice", "identical spans", f"*.{HARD}", lambda old: old * 2, same=True)
put_spans("no_spans_in_one", "some empty lists", "*.rationales", without(SPANS, []))
put_spans("no_spans_anywhere", "some empty lists", "+.rationales", without(SPANS, []))
put_spans("no_hard_field", "block left out", "+.rationales", without(SPANS), words=(SPANS,))
put_spans("null_hard_field", "block left out", "+.rationales", without(SPANS, None), words=(SPANS,))
ODD_SCORES, LONG = odd("nan inf -inf None '0.5' [] {} [0.5]"), [0.5] * 5000
put_soft, put_sentences = partial(put, "soft"), partial(put, "sentences")
put_soft("odd_soft_scores", "soft scores", f"*.{SCORED}.*", *ODD_SCORES)
put_sentences("odd_sentence_scores", "soft scores", f"{LINE_SCORES}.*", *odd("nan inf None '0.5' [] {}"))
put_soft("wrong_length", "soft scores", f"*.{SCORED}", lambda old: old[:-1], lambda old: [*old, 0.5], [], LONG)
put_sentences("wrong_sentence_length", "soft scores", LINE_SCORES, lambda old: [*old, 0.5], [], LONG)
put_soft("shape_of_soft_scores", "soft scores", f"*.{SCORED}", *odd("'0.5' 0.5 {'0':0.5}"), lambda old: [old], True)
# the first document holds the evidence
put_soft("soft_scores_missing", "soft scores", "*.rationales", lambda old: old[1:], field="soft_")


# -------------------------------------------------------------------------------------------------- classes, thresholds
def times(factor: float) -> Callable[[dict[str, float]], dict[str, float]]:
    return lambda old: {name: value * factor for name, value in old.items()}


def certain(instance: Any) -> Any:
    """The label has probability 1 in the original, the others 0."""
    label, old = instance["classification"], instance["classification_scores"]
    return {**instance, "classification_scores": {name: float(name == label) for name in old}}


WITHOUT_THE_LABEL = (
    normalised(lambda label, old: {}),
    normalised(lambda label, old: {name: value for name, value in old.items() if name != label}),
    normalised(lambda label, old: {name: 1 / (len(old) - 1) for name in old if name != label}),
)
ODD_NUMBERS = odd("-0.1 1.1 nan inf None '0.5' [] True 10**400")
NO_SCORES = odd("[0.5,0.5] '0.5' 1 [['NEG',1.0]] True")
put_class = partial(put, "classes")
put_classes = partial(put, "classes", field="classification_scores")
put_classes("odd_probability", "documents and labels", f"*.{PROBABILITIES}.*", *ODD_NUMBERS)
put_class("sum_off", "documents and labels", f"*.{PROBABILITIES}", times(0.998), times(0.9))
put_classes("scores_without_the_label", "documents and labels", "*", *WITHOUT_THE_LABEL)
put_class("shape_of_probabilities", "documents and labels", f"*.{PROBABILITIES}", *NO_SCORES)
ODD_LABELS = odd(r"'neither' '' 'neg' 1 True [] {} 0.5 '\x00'")
put_class("odd_label", "documents and labels", "*.classification", *ODD_LABELS)
put_class("zero_in_the_original", "infinite KL", "*", certain)
put_list, put_threshold = partial(put, "thresholds", field="threshold"), partial(put, "thresholds")
NO_LISTS = (lambda old: old[1:], lambda old: [*old, old[0]], "none", [1], lambda old: {"0.01": old[0]}, [])
put_list("odd_thresholds", "thresholds", "*.thresholded_scores", *NO_LISTS)
ODD_THRESHOLDS = odd("None '0.01' nan [] 7 -1 GONE")
put_threshold("odd_threshold", "thresholds", "*.thresholded_scores.*.threshold", *ODD_THRESHOLDS)
ODD_ERASED = odd("None {} 'x' {'NEG':nan} {'NEG':0.2} [1]")
put_list("odd_thresholded_scores", "thresholds", f"*.thresholded_scores.*.{'|'.join(ERASED)}", *ODD_ERASED)
put_same = partial(put, "thresholds", same=True)
put_same("thresholds_in_another_order", "same thresholds", "*.thresholded_scores", lambda old: old[::-1])
put_same("threshold_within_1e_9", "same thresholds", "*.thresholded_scores.*.threshold", lambda old: old + 1e-12)
# ------------------------------------------------------------------------------------------------------- ids, documents
STRANGERS = odd("'nowhere' '' 3 None [] '../../etc/passwd' 'a'*3000")
put_id, put_field = partial(put, "ids"), partial(put, "fields")
put_id("unknown_document", "documents and labels", "*.rationales.*.docid", *STRANGERS)
put_docid = partial(put_id, field="docid")
put_docid("document_twice", "documents and labels", "*.rationales", lambda old: [*old, copy.deepcopy(old[0])])
put_id("odd_id", "instances", "*.annotation_id", *odd("None [] {} 1.5 True '' 'stranger' 10**40"))
NO_RATIONALES = odd("'x' 3 {} [3] [[]] ['x'] True {'docid':'x'}")
put_id("wrong_type_of_rationales", "wrong type", "*.rationales", *NO_RATIONALES)
TOP, OF_RATIONALE = f"classification|{PROBABILITIES}|thresholded_scores", f"{SPANS}|{SOFT}|{SENTENCES}"
put_field("optional_field_null", "optional field", f"1|2|3.{TOP}", None, GONE)
put_field("optional_field_of_a_rationale", "optional field", f"1|2|3.rationales.0.{OF_RATIONALE}", None, GONE)
put("any", "any_value_anywhere", "anything", "*.*", *VALUES)


@mutates("instances", "spans")
def no_rationales(world: World) -> Expect:
    for instance in world.instances:
        instance["rationales"] = []
    if "classes" not in world.parts:
        return Expect("nothing to score", world.results)
    return Expect("no hard field", words=(f"{SPANS}|rationales",))


@mutates("instances", "soft")
def no_soft_field(world: World) -> Expect:
    for instance in world.instances:
        for rationale in instance["rationales"]:
            del rationale[SOFT]
    needed = "spans" not in world.parts and "soft" in world.parts  # explain --scores lives on them
    return Expect("soft scores" if needed else "block left out", words=(SOFT,))


@mutates("instances", "ids")
def instance_twice(world: World) -> Expect:
    world.instances.append(copy.deepcopy(world.random.choice(world.instances)))
    return Expect("instances", world.results, len(world.instances), "annotation_id")


@mutates("instances", "ids")
def some_without_instance(world: World) -> Expect:
    del world.instances[world.random.randrange(len(world.instances))]
    option = "only_predicted" if world.call else "--only-predicted"
    return Expect("some without instance", words=(option,) if takes_only_predicted(world) else ())


def takes_only_predicted(world: World) -> bool:
    return bool(world.call) or world.argv[0] == "score"


@mutates("instances", "ids")
def only_predicted(world: World) -> Expect:
    if not takes_only_predicted(world):
        return Expect("same meaning")
    size = len(world.instances)
    del world.instances[world.random.randrange(size)]
    world.argv += ["--only-predicted"] if world.argv else []
    world.settings["only_predicted"] = True
    return Expect("only predicted", words=(f"scored:{size - 1}/{size}",))


@mutates("instances", "ids")
def no_instances(world: World) -> Expect:
    world.instances.clear()
    return Expect("instances", world.results)


@mutates("instances", "ids")
def another_order(world: World) -> Expect:
    world.random.shuffle(world.instances)
    world.instances[:] = [dict(reversed(instance.items())) for instance in world.instances]
    return Expect("same meaning", same=True)


# --------------------------------------------------------------------------------------------------------------- fields
def owners(instance: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of an instance whose fields the format knows."""
    rationale = instance["rationales"][0]
    return [instance, rationale, rationale[SPANS][0], instance["thresholded_scores"][0]]


@mutates("instances", "fields")
def misspelt_field(world: World) -> Expect:
    """In place of the right one, in one instance or in all."""
    depth = world.random.randrange(4)
    name = world.random.choice(list(owners(world.instances[0])[depth]))
    other = misspelt(world.random, name)
    for instance in world.instances if world.random.random() < 0.5 else world.instances[:1]:
        owner = owners(instance)[depth]
        owner[other] = owner.pop(name)
    return Expect("misspelt field", world.results, 1, other)


@mutates("instances", "fields")
def misspelt_beside(world: World) -> Expect:
    """Beside the right one."""
    number = world.random.randrange(len(world.instances))
    owner = world.random.choice(owners(world.instances[number]))
    other = misspelt(world.random, world.random.choice(list(owner)))
    owner[other] = 1
    return Expect("misspelt field", world.results, number + 1, other)


@mutates("instances", "fields")
def known_misspellings(world: World) -> Expect:
    right, wrong = world.random.choice(
        (("rationales", "rationale"), (ERASED[0], "comprehensivness_classification_scores"))
    )
    for instance in world.instances:
        instance[wrong] = instance.pop(right)
    return Expect("misspelt field", world.results, 1, wrong, words=("did you mean",))


@mutates("instances", "fields")
def unknown_field(world: World) -> Expect:
    depth, name = world.random.randrange(4), world.random.choice(("zebra", "wall_clock", "übung"))
    for instance in world.instances:
        owners(instance)[depth][name] = (
            world.random.choice([one for one in VALUES if one == one and one != math.inf]) if depth == 0 else 1
        )
    return Expect("unknown field", words=(name,))


@mutates("instances", "fields")
def nothing_to_score(world: World) -> Expect:
    world.instances[:] = [{"annotation_id": instance["annotation_id"], "query": "q"} for instance in world.instances]
    return Expect("nothing to score", words=("rationales|classification",))


@mutates("instances", "fields")
def outcome(world: World) -> Expect:
    number, size = world.random.randrange(len(world.instances)), len(world.instances)
    for instance in world.instances:
        instance["outcome"] = "answered"
    refused = {"outcome": "refused", "classification": None, "rationales": []}
    world.instances[number] = {"annotation_id": world.instances[number]["annotation_id"], **refused}
    return Expect("outcome", world.results, number + 1, words=(f"answered:{size - 1}/{size}",))


@mutates("instances", "any")
def any_values_deep(world: World) -> Expect:
    for _ in range(world.random.choice((1, 1, 3))):
        replace(world.random, *any_place(world.random, world.instances), [*VALUES, GONE, GONE])
    return Expect("anything")


# ---------------------------------------------------------------------------------------------------------------- lines
NO_OBJECTS = b'[1, 2]|3|null|"x"|{|\xff\xfe|key: value|<html><body>login</body></html>'.split(b"|")
SWAPPED = ((b'"', b"'", 2), (b"a", b"\xc3(", 1), (b":", b": 1e", 1), (b": ", b": 01, ", 1))


def damaged_line(world: World, lines: list[bytes], at: int) -> str:
    """A line that is no JSON object."""
    line = lines[at]
    damaged = [*NO_OBJECTS, b"\x00" * 40, line[: len(line) // 2], line.rstrip() + b",", line.rstrip() + b" {}"]
    lines[at] = world.random.choice([*damaged, *(line.replace(*each).rstrip() for each in SWAPPED)]) + b"\n"
    return "no JSON"


def key_twice(world: World, lines: list[bytes], at: int) -> str:
    record = json.loads(lines[at])
    name = world.random.choice(list(record))
    lines[at] = f"{{{json.dumps(name)}: {json.dumps(record[name])}, ".encode() + lines[at][1:]
    return "key twice"


def blank_line(world: World, lines: list[bytes], at: int) -> str:
    lines.insert(at, world.random.choice((b"\n", b"  \n", b"\r\n", b"\t\n")))
    return "blank line"


def deep_line(world: World, lines: list[bytes], at: int) -> str:
    depth = world.random.choice((70, 500, 900, 1100, 5000, 100_000))
    name = world.random.choice(("zebra", "annotation_id", "query"))
    inside = json.dumps(nested(depth)) if depth < 600 else "[" * depth + "1" + "]" * depth
    lines[at] = f'{{"{name}": {inside}, '.encode() + lines[at][1:]
    return "nesting"


def same_lines(world: World, lines: list[bytes], at: int) -> str:
    """Other blanks, line ends and escapes; the last line without its end."""
    ways: tuple[Callable[[bytes], bytes], ...] = (
        lambda line: line,
        lambda line: line.rstrip() + b"\r\n",
        lambda line: json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n",
        lambda line: json.dumps(json.loads(line), ensure_ascii=False).encode() + b" \n",
    )
    lines[:] = map(world.random.choice(ways), lines)
    lines[-1] = lines[-1].rstrip(b"\r\n")
    return "same meaning"


def any_bytes(world: World, lines: list[bytes], at: int) -> str:
    text = bytearray(b"".join(lines))
    for _ in range(world.random.choice((1, 1, 2, 8))):
        place, size = world.random.randrange(len(text)), world.random.choice((0, 1, 1, 30))
        text[place : place + size] = world.random.randbytes(world.random.choice((0, 1, 3)))
    lines[:] = [bytes(text)]
    return "anything"


def spoils_lines(kind: str, way: Callable[[World, list[bytes], int], str]) -> None:
    """Register a way to spoil the lines of the predictions, or of the gold file."""

    def mutator(world: World) -> Expect:
        path = world.results if kind == "lines" else world.gold
        lines = world.lines(path)
        at = world.random.randrange(len(lines))
        row = way(world, lines, at)
        world.files[path] = b"".join(lines)
        open_row = row in ("anything", "same meaning")
        return Expect(row, "" if open_row else path, 0 if open_row else at + 1, same=row == "same meaning")

    mutates(kind, "lines", f"{'gold_' if kind != 'lines' else ''}{way.__name__}")(mutator)


for _way in (damaged_line, key_twice, blank_line, deep_line, same_lines, any_bytes):
    spoils_lines("lines", _way)
    spoils_lines("gold lines", _way)
