"""Networks of ``transformers`` and their tokenizers: opened here, from the Hub, or as they are."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import DataError, UsageError, get_first_line
from eraser_hub.records.extras import need

if TYPE_CHECKING:
    from .opening import Opening
    from .transformer import TransformerModel


# task -> our module and class, and the ends of its architectures' names; the first is that of the class that opens it
KINDS = {
    "classification": ("transformer", "TransformerModel", "ForSequenceClassification"),
    "multiple-choice": ("multiple_choice", "ChoiceModel", "ForMultipleChoice"),
    "question-answering": ("question_answering", "AnswerModel", "ForQuestionAnswering"),
    "generation": ("prompted", "PromptedModel", "ForCausalLM", "LMHeadModel"),
}
HUB_SECONDS = 5.0  # in which the Hub is to answer


def silence() -> None:
    """Let transformers print errors alone, and show no progress."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def find_loading_options(name: str, trust_remote_code: bool) -> dict[str, Any]:
    """Return options of from_pretrained, by which it takes the Hub's files from the cache where the Hub is silent.

    Args:
        name: folder or Hub id.
        trust_remote_code: run the code that the model brings.

    Raises:
        DataError: no folder, and no model of the Hub; or the Hub does not answer and the cache does not have it.
    """
    answer = "yes" if Path(name).is_dir() else ask_hub(name)
    if answer not in ("yes", "cached"):
        hub = "has no such model" if answer == "no" else "does not answer"
        raise DataError(f"expected a model, found no folder of this name, and the Hub {hub}{hint(name)}", file=name)
    return {"trust_remote_code": trust_remote_code, "local_files_only": answer == "cached"}


def ask_hub(name: str) -> str:
    """Return whether the Hub has a model: yes, no, "" where it does not answer; else whether the cache has it: cached.

    Its client waits for half a minute where there is no network, also against its own timeout: a name is looked up, and
    what looks it up does not listen.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    answers: list[str] = []

    def ask() -> None:
        with suppress(Exception):  # the library raises many kinds, its HTTP client's among them
            try:
                HfApi().model_info(name, timeout=HUB_SECONDS)
                answers.append("yes")
            except (HFValidationError, RepositoryNotFoundError) as error:
                answers.append("yes" if isinstance(error, GatedRepoError) else "no")

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    files: list[Any] = []
    if answers != ["yes"]:
        with suppress(HFValidationError):
            files = [try_to_load_from_cache(name, file) for file in ("config.json", "tokenizer_config.json")]
    return "cached" if any(isinstance(file, str) for file in files) else "".join(answers)


def hint(name: str) -> str:
    """Return ``: did you mean 'models/mine'?`` where there is a file or folder here of nearly this name, else ""."""
    nearest = Path()
    for part in Path(name).parts:
        if not (nearest / part).exists():
            near = get_close_matches(part, [entry.name for entry in nearest.iterdir()], 1) if nearest.is_dir() else []
            if not near:
                return ""
            part = near[0]
        nearest /= part
    return f": did you mean {str(nearest)!r}?"


def load_tokenizer(name: str, options: Mapping[str, Any]) -> Any:
    """Load the tokenizer of a model, set to take words (byte-level tokenizers need a blank before each).

    Args:
        name: folder or Hub id.
        options: of :func:`find_loading_options`.
    """
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True, **options)
    check_vocabulary(tokenizer, name)
    return tokenizer


def prepare_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer in memory, set to take words."""
    if getattr(tokenizer, "add_prefix_space", None) is not False:
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return load_tokenizer(folder, {})


def check_vocabulary(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer of special tokens alone, which transformers makes where a model comes without a tokenizer.

    Raises:
        DataError: such a tokenizer.
    """
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    words = tokenizer.get_vocab().keys() - {*tokenizer.all_special_tokens, *added}
    if not any(word.strip("\u2581\u0120 ") for word in words):  # some have a sign for a blank of their own
        raise _make_no_tokenizer_error(name)


def _make_no_tokenizer_error(name: str) -> DataError:
    message = (
        "expected the model's tokenizer beside its weights (such as tokenizer.json or vocab.txt), found none: write it "
        f"there by tokenizer.save_pretrained({name!r})"
    )
    return DataError(message, file=name)


def make_open_error(error: Exception, name: str) -> DataError:
    """Return the error for a model that transformers did not open; its first line names what is missing."""
    if "the backend tokenizer" in str(error) and Path(name).is_dir():
        return _make_no_tokenizer_error(name)
    if "trust_remote_code" in str(error):
        message = "the model brings its own code, not run: say NAME(trust_remote_code=True) if you trust its source"
        return UsageError(message, file=name)
    return DataError(f"cannot open the model: {get_first_line(error)}", file=name)


def find_task(architecture: str, task: str = "auto", name: str = "") -> str:
    """Return what a network computes, one of :data:`KINDS`.

    Args:
        architecture: the name of its class.
        task: what it is said to compute; auto: by its architecture.
        name: of the model, for the error.

    Raises:
        DataError: none of these, or another architecture that generates no text.
    """
    found = next((kind for kind, (_, _, *ends) in KINDS.items() if architecture.endswith(tuple(ends))), "")
    chosen = found if task in ("auto", found) else "" if task == "generation" else task
    if not chosen:
        message = "expected a model for sequence classification, multiple choice, question answering or generation, "
        message += f"found {architecture}; fine-tune it first (eraser-hub train --model {name})"
        raise DataError(message, argument="model")
    return chosen


def open_folder(place: str | Path, facts: Mapping[str, Any], settings: Opening) -> TransformerModel:
    """Open a network of transformers by its architecture.

    Args:
        place: folder or Hub id.
        facts: what ``train`` wrote beside it: a model reads as much at a time as it did in training.
        settings: of the model.

    Raises:
        DataError: it cannot be opened, or is no network for one of the tasks.
    """
    name = str(place)
    if settings.device_map and settings.device is not None:
        message = f"expected `device` or `device_map`, found both: {settings.device} and {settings.device_map}"
        raise DataError(message, argument="device_map")
    options = find_loading_options(name, settings.trust_remote_code)
    need("torch", "transformers", *(["accelerate"] if settings.device_map else []))
    import torch
    import transformers

    silence()
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        task = find_task(architecture, settings.task, name)
        weights = dict(options)
        if task == "generation":  # its tokenizer stays as it is: the prompt is one text
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
            check_vocabulary(tokenizer, name)
            weights |= {"dtype": getattr(torch, settings.dtype)} if settings.dtype != "float32" else {}
            weights |= {"device_map": settings.device_map} if settings.device_map else {}
        else:
            tokenizer = load_tokenizer(name, options)
        kind = getattr(transformers, f"AutoModel{KINDS[task][2]}")
        network, loaded = kind.from_pretrained(name, output_loading_info=True, **weights)
        if missing := sorted(loaded["missing_keys"]):
            message = f"its files lack {len(missing)} of the weights of {type(network).__name__}, which transformers "
            message += f"would draw at random ({', '.join(missing[:3])}): fine-tune it first"
            raise DataError(f"{message} (eraser-hub train --model {name})", file=name)
        return _make_model(
            network,
            tokenizer,
            task,
            settings,
            query_last=bool(facts.get("query_last")),
            window=facts.get("window") if settings.window is None else settings.window,
            device=settings.device,
            description=f"{architecture} {Path(name).name}",
        )
    except DataError:
        raise
    except Exception as error:  # transformers and tokenizers raise many kinds; the first line names what is missing
        raise make_open_error(error, name) from error


def from_objects(network: Any, tokenizer: Any, settings: Opening) -> TransformerModel:
    """Return a loaded network and its tokenizer, of a pipeline or as they are, as a model; it stays where it is.

    Raises:
        DataError: a network of transformers for none of the tasks; a tokenizer that takes no words.
    """
    architecture, task = type(network).__name__, "classification"
    if settings.task != "auto" or type(network).__module__.startswith("transformers."):
        task = find_task(architecture, settings.task)  # else it is a class of one's own
    model = _make_model(
        network,
        tokenizer if task == "generation" else prepare_tokenizer(tokenizer),
        task,
        settings,
        window=settings.window,
        device=settings.device or str(next(network.parameters()).device),
        description=architecture,
    )
    # no record tells one network of a class from another but by these
    name = Path(getattr(network, "name_or_path", "")).name or architecture
    facts = f"network:{name},{sum(weights.numel() for weights in network.parameters())}"
    model.details = f"{model.details}|{facts}" if model.details else facts
    return model


def _make_model(network: Any, tokenizer: Any, task: str, settings: Opening, **options: Any) -> TransformerModel:
    module, name, *_ = KINDS[task]
    kind: type[TransformerModel] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    options |= {"uses_query": bool(settings.query), "precision": settings.precision}
    if task == "generation":
        names = ("prompt", "label_words", "label_score", "dtype", "config")
        options |= {name: getattr(settings, name) for name in names}
    if task == "classification":
        problem = getattr(network.config, "problem_type", None)
        if problem not in (None, "single_label_classification") or getattr(network.config, "num_labels", 2) == 1:
            message = f"expected a classifier with one label per text, found {problem or 'one output'}"
            raise DataError(f"{options['description']}: {message}")
    return kind(network, tokenizer, **options)
