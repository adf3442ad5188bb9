"""What a case is: a sound command or call (a plan), what spoils it (a mutator), and what the policy demands then."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .material import json_lines
from .values import replace, targets

ERROR, COMPUTED, EITHER = "error", "computed", "either"

# The rows of FORMATS.md, section 5b (and, below the gap, what the whole of "never silent, never lost" demands)
POLICY: dict[str, tuple[str, str]] = {
    "bad spans": (ERROR, "predicted spans: overlapping; negative, reversed or empty; past the end; odd offsets: error"),
    "identical spans": (COMPUTED, "identical predicted spans collapse to one"),
    "empty gold": (COMPUTED, "gold spans: empty ones are real"),
    "bad gold": (ERROR, "gold spans: reversed, past the end, unknown document; annotation id twice: error"),
    "optional field": (ERROR, "an optional field in some instances and not in others, null = absent: error"),
    "no hard field": (COMPUTED, "no hard field anywhere: span scores are left out, the rest is scored, and it is said"),
    "some empty lists": (COMPUTED, "hard fields present, some instance with an empty list: it has no predicted spans"),
    "soft scores": (ERROR, "soft scores missing where there is evidence; wrong length, NaN, infinite, null, string"),
    "document without evidence": (COMPUTED, "a predicted document without evidence: its truth is all False"),
    "misspelt field": (ERROR, 'an unknown field that is nearly a known one, at any depth: error with "did you mean"'),
    "unknown field": (COMPUTED, "any other unknown field: said once, which, in how many instances; not scored"),
    "nothing to score": (ERROR, "nothing that can be scored: error that lists the fields which would be"),
    "block left out": (COMPUTED, "a block of scores left out: one line, which and for want of which field"),
    "key twice": (ERROR, "a key twice in one object: error with file and line"),
    "blank line": (ERROR, "a blank line inside a file: error with file and line"),
    "nesting": (ERROR, "nesting deeper than 64: error with file and line"),
    "raw annotations": (ERROR, "annotations and documents given to score raw are checked exactly as build checks them"),
    "some without instance": (ERROR, "some annotations without an instance: the error counts, names --only-predicted"),
    "only predicted": (COMPUTED, "--only-predicted: those with an instance are scored; the output says scored:n/m"),
    "no sentence offsets": (COMPUTED, "gold without sentence offsets (-1): left out of sentence scores, and counted"),
    "documents and labels": (ERROR, "unknown document, twice; unknown label; bad probabilities; sum off by 1e-3"),
    "thresholds": (ERROR, "thresholds missing, doubled, or not those asked for: error"),
    "same thresholds": (COMPUTED, "thresholds are matched within 1e-9, in any order"),
    "instances": (ERROR, "an instance without annotation or twice, an empty file: error"),
    "infinite KL": (COMPUTED, "KL with a zero in the original: inf, NaN as in the reference; null in JSON"),
    "outcome": (COMPUTED, 'outcome other than "answered": no spans, scores of zero, wrong label; answered:n/m'),
    "no JSON": (ERROR, "not JSON, cut line, not an object, broken UTF-8: error with file and line"),
    #
    "same meaning": (COMPUTED, "another spelling of the same input gives the same scores"),
    "wrong type": (ERROR, "a value of a wrong type: one clear error"),
    "anything": (EITHER, "no traceback, no hang, nothing half-written, whatever the answer"),
    "damaged folder": (ERROR, "damaged Parquet, card or release.json of a wrong shape: one error that names it"),
    "damaged score file": (ERROR, "score files of a wrong shape, or with NaN, 1e400: one error, nothing written"),
    "damaged archive": (ERROR, "an archive that is none, is cut or lies: one clear error that names it"),
    "good after bad": (COMPUTED, "after a download that was no archive the good file is taken"),
    "data lost": (ERROR, "a folder that no build wrote is refused and stays as it was"),
    "one bad corpus": (ERROR, "the other corpora are built, the bad one is named, exit 1"),
    "usage": (ERROR, "an option out of its range: exit 2, or 1, with the option or value named"),
    "import counted": (COMPUTED, "whatever an import leaves out or changes is counted and said"),
    "corpus.yaml": (ERROR, "a corpus.yaml without name or labels, or with another key: one error names it"),
    "object": (ERROR, "an object that is no rows: ValueError in clear words"),
    "output": (ERROR, "an input, a pipe, a socket, a disk, a stranger's file: refused, nothing changed"),
    "other data": (ERROR, "predictions made of other data: refused, --allow-mismatch scores them and says so"),
    "check": (ERROR, "check finds each change of what a built folder says, whatever else agrees"),
    "endpoint": (ERROR, "a server that never answers as the API does: one error, no lines of a bad model"),
    "object taken": (COMPUTED, "torch tensors, IterableDataset, uint16 columns are taken"),
}


@dataclass
class Expect:
    """What the policy demands of one case.

    Args:
        row: the key in `POLICY`.
        file, line, field: what the error must name, where the policy says that it does.
        words: words that stdout and stderr together must hold, whatever the answer.
        same: the scores must be those of the sound input.
        verdict: another than the row's.
    """

    row: str
    file: str = ""
    line: int = 0
    field: str = ""
    words: tuple[str, ...] = ()
    same: bool = False
    verdict: str = ""

    def __post_init__(self) -> None:
        self.verdict = self.verdict or POLICY[self.row][0]


@dataclass
class World:
    """One case while it is made: a sound input, which a mutator spoils.

    Args:
        random: draws of this case.
        files: path -> records (written as JSON lines) or bytes.
        links: path -> a file or folder of the stock; a link, or a copy where ``copies`` is set.
        argv: the command line; empty where ``call`` is made instead.
        call: a module's compute over ``predictions`` and ``references``.
        outputs: what the command writes.
        results: the prediction file, gold: the annotation file that mutators spoil.
        parts: what the verb judges of instances; a mutator of another part expects no verdict.
        acts: done in the folder after all files are there.
        then: a second command line that must succeed; between: done before it.
        keeps: paths that must stay as they are, though they lie in the outputs.
        lenient: the verb reads no more than it shows: an error may stay unseen.
        verb_prints_errors: the verb's findings go to stdout.
        partial: what is whole may stay after an error.
        notes: what a reproduction must know besides.
        mounts: file systems that end with the case.
        reply: what the server of `ask` sends, piece by piece.
        clean: what a call may raise.
    """

    random: random.Random
    files: dict[str, Any] = field(default_factory=dict)
    links: dict[str, Path] = field(default_factory=dict)
    copies: bool = False
    argv: list[str] = field(default_factory=list)
    call: Callable[..., Any] | None = None
    predictions: Any = None
    references: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    results: str = ""
    gold: str = ""
    config: str = "movies"
    parts: frozenset[str] = frozenset({"spans", "soft", "sentences", "classes", "thresholds", "ids", "fields", "lines"})
    acts: list[Callable[[Path], Any]] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] = ()
    lenient: bool = False
    verb_prints_errors: bool = False
    partial: bool = False
    between: Callable[[], Any] | None = None
    notes: list[str] = field(default_factory=list)
    mounts: list[Path] = field(default_factory=list)
    reply: Callable[[], Iterator[bytes]] | None = None
    clean: tuple[type[Exception], ...] = (ValueError,)

    @property
    def instances(self) -> list[Any]:
        """The predictions to spoil, of the file or of the call."""
        return self.predictions if self.call else self.files[self.results]

    @property
    def gold_records(self) -> list[Any]:
        """The gold records to spoil."""
        return self.references if self.call else self.files[self.gold]

    def any_of(self, records: list[Any]) -> tuple[int, Any]:
        """(number, one of the records), at random."""
        number = self.random.randrange(len(records))
        return number, records[number]

    def lines(self, path: str) -> list[bytes]:
        """The file's lines; what is put into `files` in their place is written as it is."""
        return json_lines(self.files[path]).splitlines(keepends=True)


Mutator = Callable[[World], "Expect | None"]
Plan = Callable[[random.Random, Path], World]


@dataclass(frozen=True)
class Pair:
    """A plan and one of the mutators of a kind that the plan takes."""

    verb: str
    plan: Plan
    mutator: Mutator
    part: str

    @property
    def name(self) -> str:
        return f"{self.plan.__name__}/{self.mutator.__name__}"


# kinds whose mutators make the input, sound or not: without them the plan has none
NO_INPUT = frozenset({"archives", "downloads", "strangers' folders", "parquet"})
MUTATORS: dict[str, list[tuple[Mutator, str]]] = {}
PLANS: dict[str, list[tuple[Plan, tuple[str, ...]]]] = {}


def mutates(kind: str, part: str = "", name: str = "") -> Callable[[Mutator], Mutator]:
    """Register a mutator: the kind of input it spoils, and the part of instances that it touches."""

    def register(function: Mutator) -> Mutator:
        function.__name__ = name or function.__name__
        MUTATORS.setdefault(kind, []).append((function, part))
        return function

    return register


def puts(kind: str, part: str, name: str, row: str, path: str, *values: Any, **expect: Any) -> None:
    """Register a mutator that puts one of the values at a path (`values.targets`) of the records of its kind.

    The expectation names the record's line and the last name in the path.
    """
    names = [one for one in path.split(".") if one not in "*+"]

    def mutator(world: World) -> Expect:
        own = {"gold": lambda: world.gold_records, "scores": lambda: world.files["s.json"]}
        records = own.get(kind, lambda: world.instances)()
        found = targets(world.random, records, path.split("."))
        for container, key, _ in found:
            replace(world.random, container, key, values)
        file = "s.json" if kind == "scores" else world.gold if kind == "gold" else world.results
        line = found[0][2][0] + 1 if isinstance(records, list) else 0
        settings = {"field": names[-1].split("|")[0] if "|" not in names[-1] else "", **expect} if names else expect
        return Expect(row, file, line, **settings)

    mutates(kind, part, name)(mutator)


def plans(verb: str, *kinds: str) -> Callable[[Plan], Plan]:
    """Register a sound command or call of a verb, and the kinds of mutators that it takes."""

    def register(function: Plan) -> Plan:
        PLANS.setdefault(verb, []).append((function, kinds))
        return function

    return register


def pairs(verb: str) -> Iterator[Pair]:
    """Every plan of the verb with every mutator that fits it."""
    for plan, kinds in PLANS[verb]:
        if not NO_INPUT.issuperset(kinds):
            yield Pair(verb, plan, sound, "")
        for kind in kinds:
            for mutator, part in MUTATORS[kind]:
                yield Pair(verb, plan, mutator, part)


def sound(world: World) -> Expect:
    """Nothing is spoilt: the plan itself must succeed, whatever came before in this worker."""
    return Expect("same meaning", same=True)
