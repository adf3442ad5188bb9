"""Write docs/api.ipynb, the way through the Python API, with the outputs of its cells: `python -m tools.notebook`."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api.ipynb"


def run_cells(cells: list[dict[str, Any]]) -> None:
    """Run the code cells one after the other in this folder, and keep what each shows as its outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate((each for each in cells if each["cell_type"] == "code"), 1):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, "cell", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        outputs: list[dict[str, Any]] = []
        if printed.getvalue():
            lines = printed.getvalue().splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
        if value is not None:
            shown = {"text/plain": repr(value).splitlines(keepends=True)}
            if hasattr(value, "_repr_html_"):
                shown["text/html"] = value._repr_html_().splitlines(keepends=True)
            result = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": shown}
            outputs.append(result)
        cell |= {"execution_count": count, "outputs": outputs}


def main() -> None:
    """Run the notebook in a temporary folder, and write it with its outputs."""
    notebook = json.loads(PAGE.read_text(encoding="utf-8"))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run_cells(notebook["cells"])
        finally:
            os.chdir(before)
    PAGE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
