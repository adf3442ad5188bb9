"""The judgement of an outcome by the policy, and a fault told so that it can be seen again."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

from eraser_hub.conversion.eraser.configs import IMPORT_RECORD

from .cases import COMPUTED, ERROR, POLICY, Expect, World
from .material import json_lines
from .runs import CASE_SECONDS, Outcome, snapshot

LONGEST_ERROR, MOST_LINES = 20_000, 60
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
LEFT_BEHIND = (".tmp", ".building", ".old", ".incomplete", ".partial")
# what names the input in a score file, not its scores
IDENTITY = ("data_digest", "predictions_digest")


def incomplete(path: Path) -> str:
    """Why a written file is not whole; "" where it is."""
    content = path.read_bytes()
    try:
        if path.suffix == ".json":
            json.loads(content, parse_constant=_refuse)
        elif path.suffix == ".jsonl":
            [json.loads(line, parse_constant=_refuse) for line in content.splitlines()]
        elif path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.ParquetFile(io.BytesIO(content)).read()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no end" if path.suffix == ".html" and not content.rstrip().endswith(b">") else ""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def half_written(world: World, folder: Path, before: dict[str, str], outcome: Outcome) -> str:
    """What was changed that should not have been, was left behind, or is not whole."""
    after = snapshot(folder)
    for path in sorted(after.keys() | before.keys()):
        name, kept = path.rsplit("/", 1)[-1], path.startswith(world.keeps or ("\0",))
        output = path.startswith(world.outputs or ("\0",)) and not kept
        resumable = name.endswith(".partial") and "--resume" in outcome.err
        if after.get(path) == before.get(path) or name.endswith(".lock") or resumable:
            continue
        if path in before and not output:
            return f"{path} was {'changed' if path in after else 'removed'}, it is no output"
        hidden = name.startswith(".") and name != IMPORT_RECORD
        if path in after and (name.endswith(LEFT_BEHIND) or hidden or not output):
            return f"{path} was left behind"
        built = "not built, for the error below" in outcome.err  # one bad corpus keeps no other from being built
        if outcome.rc != 0 and not (world.partial or built):
            return f"{path} was {'written' if path in after else 'removed'}, with exit status {outcome.rc}"
        # what an archive holds is as it is
        why = incomplete(folder / path) if path in after and not path.startswith("cache/unpacked/") else ""
        if why:
            return f"{path} is not whole: {why}"
    return ""


def unclear(expect: Expect, world: World, outcome: Outcome) -> str:
    """What a clean error, or what must be said, lacks."""
    errors, said = outcome.err + (outcome.out if world.verb_prints_errors else ""), outcome.err + outcome.out
    if CONTROL.search(outcome.err.replace("\r", "")):
        return "control characters reach the terminal"
    if len(outcome.err) > LONGEST_ERROR or len(outcome.err.splitlines()) > MOST_LINES:
        return f"{len(outcome.err)} characters of error, {len(outcome.err.splitlines())} lines"
    if outcome.rc == 1 and expect.verdict == ERROR:
        file = "" if world.call else Path(expect.file).name
        where = f"{file}:{expect.line}" if expect.line and file else file
        # NaN is no JSON: then the line says it all
        if where not in errors or (expect.field not in errors and "JSON" not in errors) or not errors.strip():
            return f"the error does not name {where if where not in errors else expect.field}"
    if (outcome.rc == 0 and not world.lenient) or (outcome.rc == 1 and expect.verdict == ERROR):
        missing = [words for words in expect.words if not any(word in said for word in words.split("|"))]
        return f"nothing says {', '.join(missing)}" if missing else ""
    return ""


def plain(scores: Any) -> Any:
    """Scores to compare: no signature, no digest, floats to nine digits."""
    if isinstance(scores, dict):
        return {key: plain(value) for key, value in scores.items() if key not in IDENTITY and "signature" not in key}
    if isinstance(scores, (list, tuple)):
        return [plain(value) for value in scores]
    return f"{scores:.9g}" if isinstance(scores, float) else scores


def judge(expect: Expect, world: World, outcome: Outcome, damage: str, base: Any) -> tuple[str, str]:
    """(the column of the table, what was wrong)."""
    said = outcome.err.strip() or outcome.out.strip()
    verdict = "either" if world.lenient and expect.verdict == ERROR else expect.verdict
    if outcome.hang:
        return "hang", f"still at work after {CASE_SECONDS} s"
    if outcome.trace or "Traceback (most recent call last)" in said:
        return "traceback", outcome.trace.strip().splitlines()[-1] if outcome.trace else "a traceback in the output"
    if outcome.rc not in (0, 1, 2):
        return "traceback", f"exit status {outcome.rc}"
    if damage:
        return "half-written", damage
    if verdict == ERROR and outcome.rc == 0:
        return "wrong acceptance", "exit status 0, no error"
    if verdict == COMPUTED and outcome.rc != 0:
        return "wrong refusal", f"exit status {outcome.rc}: {said[-200:]}"
    why = unclear(expect, world, outcome)
    if why:
        return "unclear", why
    if expect.same and outcome.rc == 0 and base is not None and plain(outcome.scores) != plain(base):
        return "wrong acceptance", "other scores than those of the sound input"
    return ("success" if outcome.rc == 0 else "clean error"), ""


# -------------------------------------------------------------------------------------------------------------- telling
def tell(origin: World, world: World, expect: Expect) -> str:
    """A reproduction in words: what the policy demands, the command, and what differs from the sound input."""
    lines = [f"5b: {POLICY[expect.row][1]}"]
    if world.argv:
        lines.append("$ eraser-hub " + " ".join(map(str, world.argv)))
    if world.settings:
        lines.append(f"compute(.., **{world.settings})")
    for name in ("predictions", "references", "files"):
        lines += differences(getattr(origin, name), getattr(world, name), "" if name == "files" else name)[:4]
    return "\n".join([*lines, *world.notes])


def differences(old: Any, new: Any, path: str = "", depth: int = 0) -> list[str]:
    """What was changed, a line for each place."""
    if type(old) is type(new) and isinstance(old, (dict, list)) and depth < 12:
        if isinstance(old, list):
            old, new = dict(enumerate(old)), dict(enumerate(new))
        lines: list[str] = []
        for key in sorted(old.keys() | new.keys(), key=str):
            lines += differences(old.get(key, "(nothing)"), new.get(key, "(nothing)"), f"{path}[{key!r}]", depth + 1)
        return lines
    if isinstance(old, list) and isinstance(new, bytes):  # a file whose lines were spoilt as bytes
        before, after = json_lines(old).splitlines(), new.splitlines()
        at = next((at for at, line in enumerate(after) if before[at : at + 1] != [line]), len(after))
        return [f"{path} line {at + 1}: {cut(b''.join(after[at : at + 1]))}"]
    return [] if cut(old) == cut(new) else [f"{path}: {cut(old)} -> {cut(new)}"]


def cut(value: Any, size: int = 160) -> str:
    """repr, cut; of a value whose repr fails, its type."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= size else text[:size] + "…"
