"""The wording of errors: of each rule one, word for word; docs/errors.md shows the same texts."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import tarfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

import pytest

from eraser_hub.records.errors import DataError
from eraser_hub.records.rules import Rule

from .asking.scripted_server import ScriptedServer, error

pytestmark = pytest.mark.unit

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"


# ----------------------------------------------------- what breaks rules; the working folder is a new one for each case
def of(name: str) -> Any:
    """A name of the package, imported where a case needs it: ``of("records.built:open_built")``."""
    return resolve_name(f"eraser_hub.{name}")


def write(name: str, *lines: object) -> Path:
    """A file of lines: objects as JSON, text as it is."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("".join(f"{text}\n" for text in texts).encode("utf-8", "surrogateescape"))
    return path


def annotation(name: str = "posR_161", span: Any = (), **changes: object) -> dict[str, object]:
    place = {"docid": "posR_161", "start_token": 0, "end_token": 3, "start_sentence": -1, "end_sentence": -1}
    evidence = place | {"text": "a fine film"} | dict(span)
    return {"annotation_id": name, "classification": "POS", "query": "?", "evidences": [[evidence]]} | changes


def prediction(
    name: str = "posR_161", docid: str = "posR_161", spans: Any = ((0, 3),), **more: object
) -> dict[str, Any]:
    hard = [{"start_token": start, "end_token": end} for start, end in spans]
    return {"annotation_id": name, "rationales": [{"docid": docid, "hard_rationale_predictions": hard}]} | more


def score(*predictions: object, gold: Any = (annotation(),)) -> None:
    """``score`` predictions against annotations of one document."""
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.scored_split import ScoredSplit

    write("docs/posR_161", "a fine film , and short")
    run(ScoredSplit(Path(), "val", write("val.jsonl", *gold), config="movies"), write("ours.jsonl", *predictions))


def explain(*predictions: object) -> None:
    """``explain --rationales`` for one instance, as far as it looks at the file of rationales."""
    from eraser_hub.attribution import Instance
    from eraser_hub.attribution.external_rationales import ExternalSpans

    instance = Instance("posR_161", (), ("posR_161",), (("a", "fine", "film", ",", "and", "short"),))
    ExternalSpans(write("ours.jsonl", *predictions)).check([instance], partly=False)


def review(**changes: object) -> dict[str, object]:
    return {"id": "r1", "text": ["a", "fine", "film"], "marks": [0, 1, 0], "label": "POS"} | changes


def import_rows(*rows: object, running_text: bool = False) -> None:
    """``import`` rows."""
    from eraser_hub import Columns, import_corpus
    from eraser_hub.conversion.importing.sources import open_file

    columns = Columns(("text",), ("marks",), "label", tokenized=not running_text, id="id")
    import_corpus({"train": open_file(write("reviews.jsonl", *rows))}, "reviews", columns, "corpora")


def import_other_class_labels() -> None:
    from eraser_hub import Columns, import_corpus
    from eraser_hub.conversion.importing.reader import SourceRow
    from eraser_hub.conversion.importing.sources import Source

    def source(*labels: str) -> Source:
        return Source("rows", lambda: [SourceRow(1, None, review())], {"label": labels})

    sources = {"train": source("NEG", "POS"), "test": source("POS", "NEG")}
    import_corpus(sources, "reviews", Columns(("text",), ("marks",), "label"), "corpora")


def verify(name: str, **written: str) -> None:
    """Compare a built folder that holds a file with the digests that ``build`` wrote down."""
    from eraser_hub.conversion.written_files import verify_digests

    write(f"hub/eraser/{name}")
    write(
        "hub/eraser/release.json",
        {"configs": {"movies": {"splits": {}, "digests": {name: written["sha256"]} if written else {}}}},
    )
    verify_digests(Path("hub/eraser"))


def write_over_a_folder() -> None:
    from eraser_hub.attribution.outputs import check_format

    Path("ours.jsonl").mkdir()
    check_format(Path("ours.jsonl"))


def read_a_link_to_itself() -> None:
    from eraser_hub.records.predictions import instances

    Path("ours.jsonl").symlink_to("ours.jsonl")  # a file without permissions can be read by root
    list(instances(Path("ours.jsonl")))


def read_an_older_release() -> None:
    from eraser_hub.conversion.dataset import read_release
    from eraser_hub.conversion.small_dataset import Entry

    write("hub/eraser/release.json", {"format": 1, "configs": {}})
    read_release(Path("hub/eraser"), Entry)


def export_a_damaged_release() -> None:
    from eraser_hub.conversion import HUB_DATASETS

    file = {"file": "senti_en", "byte_order_mark": False, "final_newline": True}
    built = Path("hub/bilingual_perturbation")
    write(f"{built}/release.json", {"format": 2, "configs": {"senti_en": {"files": [file]}}})
    HUB_DATASETS["bilingual_perturbation"].export(built, None, out=Path("out"))


def unpack_a_file_beside_the_folder() -> None:
    from eraser_hub.conversion.download.unpack import unpack

    with tarfile.open("movies.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../val.jsonl"))
    unpack("movies.tar.gz", "movies")


def explain_another_way(**settings: Any) -> None:
    """``explain`` with these settings, as far as these are looked at."""
    from eraser_hub.attribution.settings import ExplainSettings

    ExplainSettings(**settings).for_kind("eraser")


def open_without_a_default() -> None:
    from eraser_hub.records.built import open_built

    files = [{"split": "train", "path": "train.parquet"}]
    configs = [{"config_name": name, "data_files": files} for name in ("boolq", "movies")]
    write("hub/eraser/README.md", "---", {"configs": configs, "dataset_info": []}, "---")
    assert open_built("hub/eraser").default_config


def load_a_plug_in_of_another_sort() -> None:
    method = type("Method", (), {})
    methods = of("records.registry:Registry")("eraser_hub.methods", "method", method)
    methods._plugins = {"pi": EntryPoint("pi", "math:pi", "eraser_hub.methods")}
    methods["pi"]


def need_what_is_not_installed() -> None:
    from eraser_hub.records.extras import need

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        need("openai")


def run_out_of_memory() -> None:
    from eraser_hub.attribution.adapter import Notes, run_in_halves

    run_in_halves(lambda texts: [bytes(1 << 62) for _ in texts], ["a long text"], Notes())


def run_twice_at_a_time() -> None:
    from eraser_hub.experiments.folder import lock_run_folder

    with lock_run_folder(Path("roar"), "roar", {}), lock_run_folder(Path("roar"), "roar", {}):
        pass


def score_predictions_of_other_data() -> object:
    Path("ours.jsonl").write_bytes(b"{}")
    record = {"data": {"data_digest": 64 * "0"}, "predictions_sha256": hashlib.sha256(b"{}").hexdigest()}
    Path("ours.jsonl.run.json").write_text(json.dumps(record))
    return of("scoring.identity:identify")(Path("ours.jsonl"), "e2322d99a1b6", "val")


def resume_with_another_seed() -> None:
    from eraser_hub.attribution.outputs import open_partial_result

    for seed in (1, 2):
        with (
            suppress(KeyboardInterrupt),
            open_partial_result(Path("ours.jsonl"), {"settings": {"seed": seed}}, resume=True) as partial,
        ):
            partial.append(0, [], {})
            raise KeyboardInterrupt  # the run is stopped


def download_where_nobody_listens() -> None:
    from eraser_hub.conversion.download.http import Retries, download

    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/movies.tar.gz"
        retries = Retries(attempts=2, wait=0)
        download(url, Path("movies.tar.gz.part"), name="movies", say=lambda line: None, retries=retries)


def publish_without_a_token() -> None:
    from eraser_hub.publishing.publisher import client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        patch.setattr("huggingface_hub.get_token", lambda: None)
        client(None, None)


def ask_with_a_wrong_key() -> None:
    from eraser_hub.asking.cache import Cache
    from eraser_hub.asking.client import Client
    from eraser_hub.asking.settings import AskSettings

    async def ask(endpoint: str) -> None:
        client = Client(endpoint, AskSettings("llama"), Cache(Path("answers")), attempts=1)
        try:
            await client.ask([{"role": "user", "content": "?"}], ["NEG", "POS"])
        finally:
            await client.close()

    with ScriptedServer(lambda request, count: error(401, "no such key")) as server:
        asyncio.run(ask(server.endpoint))


# ------------------------------------------------------------------------ rule -> what breaks it, and the error's text
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "file-missing": (
        lambda: of("records.built:open_built")("no-such-folder"),
        "no-such-folder: expected the folder of a built dataset, found none",
    ),
    "file-kind": (write_over_a_folder, "ours.jsonl: expected a file, found a folder"),
    "file-unreadable": (read_a_link_to_itself, "ours.jsonl: cannot be read: Too many levels of symbolic links"),
    "file-exists": (
        lambda: (import_rows(review()), import_rows(review())),
        "corpora/reviews: expected no such folder yet, or an empty one; `force` replaces it",
    ),
    "file-changed": (
        lambda: verify("movies/val.parquet", sha256="0" * 64),
        "hub/eraser/movies/val.parquet: its content is not what build wrote: build again",
    ),
    "file-version": (
        read_an_older_release,
        "hub/eraser/release.json: expected the format 2, found 1, which another version wrote; "
        "remove the folder and build it anew",
    ),
    "file-name": (
        lambda: of("attribution.outputs:check_format")(Path("ours.txt")),
        "out: expected a file ending in .jsonl or .parquet, found 'ours.txt'",
    ),
    "file-twice": (
        lambda: of("scoring.runs:make_system_names")([Path("ours.jsonl"), Path("ours.jsonl")]),
        "expected different files of predictions, found one twice",
    ),
    "encoding": (
        lambda: score(prediction(), json.dumps(prediction()).replace("posR", "pos\udcff")),
        "ours.jsonl:2: expected UTF-8, found the byte 0xff at byte 23 of the line",
    ),
    "syntax": (
        lambda: score(prediction(), prediction(classification_scores={"POS": float("nan")})),
        "ours.jsonl:2: expected JSON, found NaN, which JSON does not have",
    ),
    "size-limit": (
        lambda: score('{"annotation_id": ' + 70 * "[" + 70 * "]" + "}"),
        "ours.jsonl:1: expected a JSON object, found one that is nested too deeply (more than 64 levels)",
    ),
    "archive-member": (
        unpack_a_file_beside_the_folder,
        "movies.tar.gz: refused: '../val.jsonl' leads out of the folder",
    ),
    "key-missing": (
        lambda: import_rows({"id": "r1", "text": ["a", "fine", "film"], "marks": [0, 1, 0]}),
        "reviews.jsonl:1: label: expected the column, found ['id', 'text', 'marks']",
    ),
    "key-unknown": (
        lambda: explain(prediction(clasification="POS")),
        "ours.jsonl:1: instance 'posR_161': clasification: no field of this format: did you mean 'classification'?",
    ),
    "key-twice": (
        lambda: score('{"annotation_id": "posR_161", "annotation_id": "posR_161"}'),
        "ours.jsonl:1: expected each key once, found the key 'annotation_id' twice in one object",
    ),
    "type": (
        lambda: score(prediction(), gold=[annotation(span={"start_token": "3"})]),
        "val.jsonl:1: instance 'posR_161': evidences[0][0].start_token: expected an integer, found the string '3'",
    ),
    "range": (
        lambda: score('{"annotation_id": "posR_161", "classification_scores": {"POS": 1e999}}'),
        "ours.jsonl:1: expected numbers of at most 64 bits, found '1e999'",
    ),
    "choice": (
        lambda: import_rows(review(marks=[0, 2, 0])),
        "reviews.jsonl:1: marks[1]: expected 0 or 1, found 2",
    ),
    "empty": (
        lambda: score(prediction(), gold=[]),
        "val.jsonl: expected at least one annotation, found none",
    ),
    "length": (
        lambda: import_rows(review(marks=[0, 1])),
        "reviews.jsonl:1: marks: expected 3 marks, one a token, found 2",
    ),
    "constant": (
        import_other_class_labels,
        "label: expected one ClassLabel, or none, in all splits, found [('NEG', 'POS'), ('POS', 'NEG')]",
    ),
    "text": (
        lambda: import_rows(review(text=["a", "fine film", "!"])),
        "reviews.jsonl:1: text[1]: expected a token without a blank, found 'fine film'",
    ),
    "id-missing": (
        lambda: score(prediction(), gold=[annotation(), annotation("posR_162")]),
        "val.jsonl:2: instance 'posR_162': annotation_id: expected an instance for this annotation, "
        "found none (1 of 2 annotations have none; `only_predicted` scores the others alone)",
    ),
    "id-unknown": (
        lambda: score(prediction(), prediction("posR_999")),
        "ours.jsonl:2: instance 'posR_999': annotation_id: no annotation has the id 'posR_999'",
    ),
    "id-twice": (
        lambda: score(prediction(), gold=[annotation(), annotation()]),
        "val.jsonl:2: instance 'posR_161': annotation_id: "
        "expected each annotation id once, found 'posR_161' again (first on line 1)",
    ),
    "document-missing": (
        lambda: score(prediction(), gold=[annotation(span={"docid": "posR_162"})]),
        "val.jsonl:1: instance 'posR_161': evidences[0][0].docid: "
        "expected a document of docs, found 'posR_162', which is not there",
    ),
    "document-unknown": (
        lambda: explain(prediction(docid="posR_162")),
        "ours.jsonl:1: instance 'posR_161': rationales: expected documents among 'posR_161', found 'posR_162'",
    ),
    "document-twice": (
        lambda: explain(prediction(rationales=2 * prediction()["rationales"])),
        "ours.jsonl:1: instance 'posR_161': rationales[1].docid: expected each document once, found 'posR_161' again",
    ),
    "span-order": (
        lambda: score(prediction(), gold=[annotation(span={"start_token": 3, "end_token": 1})]),
        "val.jsonl:1: instance 'posR_161': evidences[0][0].end_token: expected an end at or after the start 3, found 1",
    ),
    "span-bounds": (
        lambda: score(prediction(), gold=[annotation(span={"end_token": 30})]),
        "val.jsonl:1: instance 'posR_161': evidences[0][0].end_token: "
        "expected a span inside 'posR_161', which has 6 tokens, found the end 30",
    ),
    "span-overlap": (
        lambda: explain(prediction(spans=[(0, 3), (2, 4)])),
        "ours.jsonl:1: instance 'posR_161': hard_rationale_predictions: "
        "expected spans apart from each other within the 6 tokens of 'posR_161', found [2, 4]",
    ),
    "span-text": (
        lambda: import_rows(review(text="a fine film", marks="a *good* film"), running_text=True),
        "reviews.jsonl:1: marks: expected the text with marks (*word*), "
        "found 'good* film' in place of 'fine film' at character 4",
    ),
    "span-missing": (
        lambda: explain({"annotation_id": "posR_161"}),
        "ours.jsonl:1: instance 'posR_161': expected rationales, found none",
    ),
    "label-missing": (
        lambda: import_rows(review(label="")),
        "reviews.jsonl:1: label: expected a label, found ''",
    ),
    "label-unknown": (
        lambda: score(prediction(), gold=[annotation(classification="POSITIVE")]),
        "val.jsonl:1: instance 'posR_161': classification: expected one of 'NEG', 'POS', found 'POSITIVE'",
    ),
    "probabilities": (
        lambda: score(prediction(classification="POS", classification_scores={"NEG": 0.3, "POS": 0.9})),
        "ours.jsonl:1: instance 'posR_161': classification_scores: expected probabilities of all labels that sum to 1, "
        "found a sum of 1.2",
    ),
    "score-missing": (
        lambda: of("write_scores")("scores.jsonl", [annotation(documents=[], evidences=[])], []),
        "instance 'posR_161': expected scores for each row, found none",
    ),
    "option-value": (lambda: explain_another_way(kd=2), "kd: expected a share from 0 to 1, found 2"),
    "option-conflict": (
        lambda: explain_another_way(method="given", sensitivity_draws=2),
        "sensitivity_draws: given scores cannot be computed anew for other inputs",
    ),
    "option-missing": (
        open_without_a_default,
        "hub/eraser: expected --config: the dataset's card names no default",
    ),
    "extra-missing": (
        need_what_is_not_installed,
        "missing package openai: install the extra with  pip install 'eraser-hub[llm]'",
    ),
    "plug-in": (
        load_a_plug_in_of_another_sort,
        "eraser_hub.methods: math:pi: expected a class that extends Method, found 3.141592653589793",
    ),
    "unsupported": (
        lambda: of("attribution.adapters.plain:erase_tokens")(["a", "film"], [True, False], "mask", None, None),
        "`erase` mask: the model has no mask token; use `erase` remove",
    ),
    "model": (
        lambda: of("attribution.adapters.plain:PlainModel")(object()),
        "expected a model with predict_proba(token lists), found object",
    ),
    "model-output": (
        lambda: of("attribution.runner:check_outputs")([[0.3, 0.9]], ["posR_161"], 2, "MyModel"),
        "instance 'posR_161': MyModel: expected non-negative probabilities that sum to 1, found a row that sums to 1.2",
    ),
    "device": (run_out_of_memory, "out of memory with a single input; a shorter `window` needs less"),
    "data-mismatch": (
        score_predictions_of_other_data,
        "ours.jsonl: expected predictions made of the data e2322d99a1b6, found a run on the data 000000000000 "
        "(`allow_mismatch` scores them all the same)",
    ),
    "busy": (run_twice_at_a_time, "roar: another run is at work in this folder; wait for it or stop it"),
    "resume": (
        resume_with_another_seed,
        "ours.jsonl.partial: resume: the stopped run was made otherwise: seed was 1, now 2",
    ),
    "check": (
        lambda: verify("movies/mine.parquet"),
        "hub/eraser/movies/mine.parquet: not written by build",
    ),
    "network": (
        download_where_nobody_listens,
        "http://127.0.0.1:8000/movies.tar.gz: the connection was refused, also after 2 tries",
    ),
    "hub": (
        publish_without_a_token,
        "no token: log in with `hf auth login`, or set HF_TOKEN to one that may write",
    ),
    "server": (ask_with_a_wrong_key, "endpoint: the server answers Error code: 401 - no such key"),
    "code": (
        lambda: of("publishing.spaces:space_code")(write("metrics/my_score.py", "import torch")),
        "metrics/my_score.py:1: imports torch, which a Space does not install",
    ),
    "input": (
        export_a_damaged_release,
        "hub/bilingual_perturbation/release.json: senti_en: cannot be understood (KeyError('lines'))",
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_the_text_is_as_expected(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, expected = CASES[rule]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        case()
    text = re.sub(r"(?<=//127\.0\.0\.1:)\d+", "8000", str(caught.value))  # whichever port was free
    assert (caught.value.rule, text) == (rule, expected)


def test_every_rule_has_a_case() -> None:
    assert sorted(CASES) == sorted(get_args(Rule))


def test_the_page_shows_these_texts() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (`+) ?(.+?) ?\2 \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [(rule, text) for rule, _, text in rows] == [(rule, text) for rule, (_, text) in CASES.items()]
