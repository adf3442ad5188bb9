"""Faults, one of each kind, grouped by whose they are, with what reproduces them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from .workers import Verdict

_SHOWN, _BUILT = "reports/board/highlight", "conversion/build/download"
# a heading -> its verbs, and the folders of ours in whose frames it failed
VERBS = {
    "scoring": "score compare",
    _SHOWN: "report board highlight",
    _BUILT: "build export check stats import",
    "systems/train": "explain train",
    "publishing/serve": "publish serve",
}
FOLDERS = {
    "metrics/modules": "metrics",
    "scoring": "scoring",
    _SHOWN: "reports",
    "systems/train": "explain",
    _BUILT: "conversion datasets_scripts",
    "publishing/serve": "publishing",
    "door": "eraser_hub",
    "records (shared)": "records",
}
OF_VERB, OF_FOLDER = (
    {name: heading for heading, names in table.items() for name in names.split()} for table in (VERBS, FOLDERS)
)


def place(verdict: Verdict) -> str:
    """file:line of the innermost frame of ours in the traceback; "" without one."""
    trace = verdict.outcome.trace if verdict.outcome else ""
    folders = "|".join(OF_FOLDER)
    ours = rf"evaluate_modules/metrics/\w+/\w+/(\w+\.py)|(?:eraser_hub/)?({folders})/([^\"]+)"
    frames = re.findall(rf'File "(?:[^"]*?/)?(?:{ours})", line (\d+)', trace)
    frames = [frame for frame in frames if "attack" not in frame[2] and "__main__" not in frame[2]]
    if not frames:
        return ""
    copied, folder, file, line = frames[-1]
    return f"metrics/{copied}:{line}" if copied else f"{folder}/{file}:{line}"


def owner(verdict: Verdict) -> str:
    at = place(verdict)
    folder = at.split("/")[0]
    return OF_FOLDER.get(folder) or OF_VERB.get(verdict.verb, "metrics/modules")


def findings(faults: Sequence[Verdict], seed: int) -> str:
    """Markdown: one entry for each (verb, mutator, kind, place or words), and how often it came."""
    groups: dict[str, dict[tuple[str, ...], list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for fault in faults:
        mutator = fault.name.rpartition("/")[2]
        key = (
            fault.kind,
            place(fault) or re.sub(r"[\d'\"].*|(?<=the field ).*|p\\?\.jsonl.*|nothing says.*", "", fault.fault)[:60],
        )
        key += () if place(fault) else (mutator,)
        groups[owner(fault)][key].append(fault)
    lines = []
    for heading, entries in sorted(groups.items()):
        lines.append(f"\n## {heading}: {len(entries)} findings\n")
        for (kind, where, *_), faults_here in sorted(entries.items(), key=lambda entry: (entry[0][0], -len(entry[1]))):
            lines += entry_lines(kind, where, faults_here, seed)
    return "\n".join(lines)


def entry_lines(kind: str, where: str, faults: Sequence[Verdict], seed: int) -> list[str]:
    first = min(faults, key=lambda fault: len(fault.story))
    names = sorted({f"{fault.verb}/{fault.name.rpartition('/')[2]}" for fault in faults})
    outcome = first.outcome
    said = "" if outcome is None else (outcome.err.strip() or outcome.trace.strip().rsplit("\n", 1)[-1])[:500]
    shown = ", ".join(names[:8]) + (f", and {len(names) - 8} more" if len(names) > 8 else "")
    return [
        f"### {kind}: {first.name.rpartition('/')[2]}, {where or first.fault[:100]}  ({len(faults)}x)",
        f"- again: `python -m tests.attack --seed {seed} --verb {first.verb} --case {first.number}` · also: {shown}",
        *(f"- {line}" for line in first.story.splitlines()[:6] if line),
        f"- happened: {first.fault[:300]}"
        + (f"; exit status {outcome.rc}" if outcome and outcome.rc is not None else ""),
        *([f"- said: {line}" for line in said.splitlines()[:4]]),
        "",
    ]
