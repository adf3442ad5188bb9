"""Mutation testing of the metrics' leaves: which small faults in their source their tests find.

    python -m tools.mutation --checkout . --count 40 --seed 0 --out new.json [--only spans ..] [--against old.json]

cosmic-ray makes the mutants (`pip install cosmic-ray`, beside what the tests need). The sample depends on the seed and
on the mutants' statements, not on their lines or format: checkouts with equal statements get equal mutants. The tests
run on a copy of the checkout, in a fork of this process, which has imported the libraries once. The results are written
after each mutant, and the same command goes on where it was stopped; another state of the tests needs another file.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

# target -> (its source in metrics/, what tests it in tests/)
TARGETS = {
    "spans": ("spans", "metrics/test_spans metrics/test_eraser_agreement"),
    "rankings": ("rankings", "metrics/test_rankings metrics/test_eraser_agreement"),
    "erasure": ("erasure", "metrics/test_erasure metrics/test_eraser_faithfulness explain/games/test_orderings"),
    "fidelity": ("fidelity normalized_fidelity", "metrics/test_normalized_fidelity metrics/test_never_silent"),
    "resampling": ("resampling", "metrics/test_resampling metrics/test_clusters metrics/test_results"),
    "tokens": ("tokens", "metrics/test_tokens metrics/test_token_rows metrics/test_flat"),
}
LIBRARIES = ("hypothesis", "datasets", "evaluate", "scipy.stats", "scipy.sparse.csgraph", "sklearn.metrics", "gradio")
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
PYTEST = ("-xq", "-rfE", "--tb=no", "-pno:cacheprovider", "--hypothesis-seed=0", "-mnot slow")
# always an error on floats, the same on small numbers, or the same as another mutant
IDLE = re.compile(r"_(RShift|LShift|BitXor|Pow|Mod|Is|IsNot)$|_Is_Eq$|_IsNot_NotEq$|/Variable")
UNCOPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "hub")


class _Bare(ast.NodeTransformer):
    """Takes annotations away, which nothing evaluates: what differs in these alone is no mutant."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        plain = ast.Assign([node.target], node.value) if node.value else ast.Expr(node.target)
        return ast.copy_location(ast.fix_missing_locations(plain), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in {"annotation", "returns"} & set(node._fields):
            setattr(node, field, None)
        return super().generic_visit(node)


def _rank(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def mutants(file: Path, seed: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(rank, source, description) of a file's mutants, by rank: one at each place, then a second at each, and so on."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    source = file.read_text("utf-8")
    tree = _Bare().visit(ast.parse(source))
    lines: dict[int, str] = {}
    for node in ast.walk(tree):  # a statement comes after the one that it stands in
        if isinstance(node, ast.stmt):
            lines |= dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), ast.unparse(node).split("\n")[0])
    parsed = list(ast_nodes(get_ast(source)))
    places: dict[tuple[tuple[int, int], str], list[tuple[str, int, int]]] = {}
    for operator in operator_names():
        if not IDLE.search(operator):
            found = [start for node in parsed for start, _ in get_operator(operator)().mutation_positions(node)]
            for occurrence, start in enumerate(found):
                here = places.setdefault((start, operator.split("_")[0]), [])
                here.append((operator, sum(operator == other for other, *_ in here), occurrence))
    drawn, seen = [], Counter[tuple[str, str]]()
    for ((line, _), family), choices in sorted(places.items()):
        statement = lines.get(line, "")
        seen[statement, family] += 1
        place = _rank(seed, file.stem, statement, family, seen[statement, family])
        choices.sort(key=lambda choice: _rank(place, choice[:2]))
        drawn += [(turn, place, line, *choice) for turn, choice in enumerate(choices)]
    for turn, place, line, operator, number, occurrence in sorted(drawn):
        changed = mutate_code(source, get_operator(operator)(), occurrence)
        with suppress(SyntaxError):
            if ast.dump(_Bare().visit(ast.parse(changed))) != ast.dump(tree):
                both = zip(source.splitlines(), changed.splitlines(), strict=False)
                before, after = next((one.strip(), other.strip()) for one, other in both if one != other)
                said = {"file": file.name, "line": line, "operator": operator, "before": before, "after": after}
                yield f"{turn:03} {place}", changed, {"key": _rank(place, operator, number)[:16], **said}


def _test(tests: list[str], log: Path, names: list[str]) -> None:
    """What the fork does: its exit code is pytest's, or 99 where what passed was another source than the copy's."""
    import pytest

    os.setsid()
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        code = int(pytest.main([*PYTEST, f"--basetemp={log.parent / 'made'}", *tests]))
        sys.stdout.flush()
    tested = [Path(getattr(sys.modules.get(name), "__file__", "/")).resolve() for name in names]
    os._exit(99 if code == 0 and not all(one.is_relative_to(Path.cwd()) for one in tested) else code)


def run(tests: list[str], log: Path, names: list[str], limit: float) -> dict[str, Any]:
    """Run the tests in a fork: outcome, the test that failed, seconds."""
    began = time.monotonic()
    fork = multiprocessing.get_context("fork").Process(target=_test, args=(tests, log, names))
    fork.start()
    fork.join(limit)
    outcome = "timeout" if fork.is_alive() else {0: "survived", 99: "not the copy"}.get(fork.exitcode or 0, "killed")
    with suppress(ProcessLookupError):
        os.killpg(fork.pid or 0, signal.SIGKILL)
    fork.join()
    shutil.rmtree(".hypothesis", ignore_errors=True)  # it would try first what made an earlier mutant fail
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", log.read_text("utf-8", "replace"), re.M)
    return {"outcome": outcome, "by": failed[0] if failed else None, "seconds": round(time.monotonic() - began, 2)}


def measure(target: str, log: Path, known: dict[str, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The drawn mutants of a target, each with its outcome; the known ones are not tested again."""
    stems, paths = (words.split() for words in TARGETS[target])
    tests = [path for path in (f"tests/{name}.py" for name in paths) if Path(path).exists()]
    names, files = [f"eraser_hub.metrics.{stem}" for stem in stems], [Path("metrics", f"{stem}.py") for stem in stems]
    drawn = sorted(mutant for file in files for mutant in islice(mutants(file, options.seed), options.count))
    sys.dont_write_bytecode = False
    first = run(tests, log, names, 600)
    if first["outcome"] != "survived":
        raise SystemExit(f"{target}: the tests {tests} of the source as it is: {first}\n{log.read_text('utf-8')}")
    print(f"{target}: {tests} pass in {first['seconds']} s", flush=True)
    sys.dont_write_bytecode = True  # a mutant of the same second and size would be taken for the last one
    shutil.rmtree("metrics/__pycache__", ignore_errors=True)
    for _, source, mutant in drawn[: options.count]:
        if mutant["key"] not in known:
            file = Path("metrics", mutant["file"])
            kept = file.read_text("utf-8")
            file.write_text(source, "utf-8")
            mutant |= run(tests, log, names, max(30, 8 * first["seconds"]))
            file.write_text(kept, "utf-8")
        yield known.get(mutant["key"], mutant)


def main() -> None:
    """Run the mutants of each kernel and print which ones the tests catch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, default=Path())
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--against", type=Path, help="earlier results: lists what they killed and these did not")
    options = parser.parse_args()
    out = options.out.resolve()
    results: dict[str, dict[str, Any]] = json.loads(out.read_text("utf-8")) if out.exists() else {}
    earlier = json.loads(options.against.read_text("utf-8")) if options.against else {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "copy"
        shutil.copytree(options.checkout, copy, symlinks=True, ignore=UNCOPIED)
        os.chdir(copy)
        sys.path[0] = str(copy)  # -m had put the present folder there
        os.environ |= OFFLINE | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        for library in LIBRARIES:
            with suppress(ImportError):
                import_module(library)
        for target in options.only:
            known = results.setdefault(target, {})
            for mutant in measure(target, copy.parent / "log", known, options):
                known[mutant["key"]] = mutant
                out.with_suffix(".part").write_text(json.dumps(results, indent=1), "utf-8")
                out.with_suffix(".part").replace(out)
    for target in options.only:
        counts = Counter(mutant["outcome"] for mutant in results[target].values())
        print(f"{target}: {counts['killed'] + counts['timeout']}/{counts.total()} {dict(counts)}")
        old = earlier.get(target, {})
        for key, mutant in results[target].items():
            if mutant["outcome"] == "survived" and old.get(key, {}).get("outcome") != "survived":
                known_as = "LOST" if key in old else "survived"
                print(f"  {known_as}: {mutant['file']}:{mutant['line']}: {mutant['before']}  ->  {mutant['after']}")
        if old:
            print(f"  the same mutants as before: {len(old.keys() & results[target].keys())} of {len(old)}")


if __name__ == "__main__":
    main()
