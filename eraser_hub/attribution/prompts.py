"""Prompts of language models: jinja2 files, one for each family of tasks and language."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import SandboxedEnvironment

from eraser_hub.records.errors import DataError, get_first_line

FOLDER = Path(__file__).with_name("prompts")
FAMILIES = {
    **dict.fromkeys(("movies", "senti", "sst"), "sentiment"),
    **dict.fromkeys(("multirc", "boolq", "cose"), "qa_pairs"),
    **{name: name for name in ("evidence_inference", "similarity", "mrc")},
    "fever": "fact_checking",
    "esnli": "nli",
}
GENERIC = "generic"
# what a prompt asks for: a label and nothing else, or a label and quotes
LABEL, QUOTES = "label", "quotes"


def find_family(config: str) -> str:
    """Return the family of tasks of a config; "generic" for unknown ones."""
    base = config.removesuffix("_simplified").removesuffix("_flat").removesuffix("_en").removesuffix("_ch")
    return FAMILIES.get(base, GENERIC)


def find_language(config: str) -> str:
    """Return the language of a config's prompts, "zh" or "en"."""
    return "zh" if config.endswith("_ch") else "en"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt.

    Attributes:
        name: Its name, such as ``en/sentiment``, or the path of a file.
        digest: Digest of its text and of the files that it includes.
        template: The template; it renders the system message if ``part`` is "system", else the question.
    """

    name: str
    digest: str
    template: Template

    def render(
        self, part: str, documents: Sequence[Mapping[str, str]], query: str, labels: Sequence[str], answer: str
    ) -> str:
        """Return a message.

        Args:
            part: "system" or "user".
            documents: Their docid and text.
            query: The question, claim or hypothesis; "" without one.
            labels: The labels, as the model answers them.
            answer: `LABEL` or `QUOTES`.

        Raises:
            DataError: The template uses a name that there is not, or fails.
        """
        names = {"part": part, "labels": labels, "documents": documents, "query": query, "answer": answer}
        try:
            return self.template.render(names).strip("\n")
        except TemplateError as error:
            raise DataError(get_first_line(error), file=self.name, argument="prompt") from None


def open_prompt(config: str, file: Path | None = None) -> Prompt:
    """Open the prompt of a config's family, or a file; it may include ``answer.jinja`` and ``documents.jinja``.

    Raises:
        DataError: a file that cannot be read, or is no template.
    """
    language = find_language(config)
    name = f"{language}/{find_family(config)}" if file is None else str(file)
    try:
        source = (FOLDER / f"{name}.jinja" if file is None else file).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise DataError(f"cannot be read: {get_first_line(error)}", file=name, argument="prompt") from None
    folders = [FOLDER / language] if file is None else [file.parent, FOLDER / language]
    loader = ChoiceLoader([FileSystemLoader(folder) for folder in folders])
    environment = SandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    try:
        digest = _compute_digest(environment, loader, source)
        return Prompt(name, digest, environment.from_string(source))
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        message = f"expected a jinja2 template, found {get_first_line(error)}"
        raise DataError(message, file=name, line=line, argument="prompt") from None


def _compute_digest(environment: SandboxedEnvironment, loader: BaseLoader, source: str) -> str:
    sources, waiting = dict[str, str](), [("", source)]
    while waiting:
        name, text = waiting.pop()
        sources[name] = text
        names = filter(None, meta.find_referenced_templates(environment.parse(text)))
        waiting += [(one, loader.get_source(environment, one)[0]) for one in names if one not in sources]
    return hashlib.blake2b(repr(sorted(sources.items())).encode(), digest_size=6).hexdigest()
