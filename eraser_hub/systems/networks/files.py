"""A network's folder: ``config.json`` with every hyper-parameter, weights, vocabulary or the encoder's tokenizer.

out/config.json           the system, its hyper-parameters, what the data decided
out/weights.safetensors   all weights, those of an encoder too
out/vocabulary.json       the words of a network without encoder
out/encoder/              an encoder's configuration and tokenizer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from msgspec import MsgspecError, convert
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import Opening
from eraser_hub.attribution.transformers.words import CutWords, load_tokenizer, make_open_error, silence
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import replace_file
from eraser_hub.records.readers import read_json, read_json_object
from eraser_hub.systems.hyper import Hyper, NetworkHyper
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import Say, TrainConfig

from .classifiers import Shape, TokenNetwork
from .embedders import Embedder, EncoderEmbedder, WordEmbedder, read_embeddings
from .network_model import AnswerNetwork, NetworkModel
from .readings import SPECIAL, SubwordLexicon, Vocabulary

WEIGHTS, VOCABULARY, ENCODER, CONFIG = "weights.safetensors", "vocabulary.json", "encoder", "config.json"
NewEmbedder = Callable[[int], Embedder]  # takes the number of layers to train


def build_network(name: str, hyper: Hyper, shape: Shape, new_embedder: NewEmbedder) -> TokenNetwork:
    """Build an untrained network of the system of that name."""
    system: Any = SYSTEMS[name]
    kind: type[TokenNetwork] = resolve_name(system.pointer if shape.answers else system.network)
    return kind.build(new_embedder, hyper, shape)


def make_embedder_factory(
    config: TrainConfig, hyper: NetworkHyper, instances: Sequence[Instance], say: Say
) -> NewEmbedder:
    """Return a factory of embedders for the words of the training instances.

    Raises:
        DataError: an encoder that cannot be opened, embeddings that cannot be read.
    """
    if config.encoder:
        import transformers

        silence()
        load: Any = transformers.AutoModel.from_pretrained
        encoder = partial(load, config.encoder, trust_remote_code=config.trust_remote_code)
        try:
            lexicon = SubwordLexicon(CutWords(load_tokenizer(config.encoder, config.trust_remote_code)))
            encoder()  # tells before the training what is wrong with it
        except DataError:
            raise
        except Exception as error:  # transformers raises many kinds
            raise make_open_error(error, config.encoder) from error
        return lambda layers: EncoderEmbedder(encoder(), lexicon, hyper.window, layers)
    texts = [words for one in instances for words in (one.query, *one.documents)]
    vocabulary = Vocabulary.build(texts, hyper.lowercase, hyper.min_count)
    file = Path(config.embeddings) if config.embeddings else None
    vectors = None if file is None else read_embeddings(file, vocabulary, config.seed, say)
    width = hyper.embedding_size if vectors is None else vectors.shape[1]
    return lambda layers: WordEmbedder(vocabulary, width, vectors)


def save_network(network: TokenNetwork, config: dict[str, Any], out: Path) -> None:
    """Write a network into its folder.

    Args:
        network: The network.
        config: Content of ``config.json`` beside the hyper-parameters: ``system``, ``label_names``, ``uses_query``.
        out: The folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    embedder = network.embedder
    if isinstance(embedder, EncoderEmbedder):
        embedder.encoder.config.save_pretrained(out / ENCODER)
        embedder.subwords.words.tokenizer.save_pretrained(out / ENCODER)
    elif isinstance(embedder.lexicon, Vocabulary):
        words = embedder.lexicon.words[len(SPECIAL) :]
        (out / VOCABULARY).write_text(json.dumps(words, ensure_ascii=False, indent=0) + "\n", "utf-8")
    with replace_file(out / WEIGHTS) as temporary_file:
        save_model(network, str(temporary_file))
    whole = {**config, "hyper": asdict(network.hyper), "shape": asdict(network.shape), "width": embedder.width}
    with replace_file(out / CONFIG) as temporary_file:
        temporary_file.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", "utf-8")


def open_network(opening: Opening) -> NetworkModel:
    """Open a folder of :func:`save_network`.

    Raises:
        DataError: a file that is missing or damaged, or was written by another version.
    """
    folder, window, uses_query = Path(opening.model), opening.window, opening.uses_query
    config = read_json_object(folder / CONFIG)
    try:
        name = config["system"]
        system: Any = SYSTEMS[name]
        hyper = _make_hyper(system.hyper, {**config["hyper"], **({} if window is None else {"window": window})})
        shape, labels = convert(config["shape"], Shape), convert(config["label_names"], list[str])
        new_embedder = _make_empty_embedders(folder, hyper, config["width"], opening.trust_remote_code)
        network = build_network(name, hyper, shape, new_embedder)
        load_model(network, str(folder / WEIGHTS))
    except DataError as error:
        raise error if error.file else error.at(file=folder / CONFIG) from error
    except (KeyError, TypeError, ValueError, OSError, RuntimeError, MsgspecError, SafetensorError) as error:
        words = f"cannot be opened as a network of `train`: {show(str(error))}"
        raise DataError(words, file=folder) from error
    uses_query = config.get("uses_query", False) if uses_query is None else uses_query
    kind = AnswerNetwork if shape.answers else NetworkModel
    options: dict[str, Any] = {"device": opening.device, "precision": opening.precision}
    return kind(network, labels, uses_query=uses_query, description=f"{name} {folder.name}", **options)


def _make_hyper(like: Hyper, values: dict[str, Any]) -> NetworkHyper:
    names = [field.name for field in fields(like)]
    strange = [name for name in values if name not in names]
    if strange:
        words = f"expected hyper-parameters among {', '.join(names)}; found {show(strange[0])}"
        raise DataError(words)
    return type(like)(**values)  # type: ignore[return-value]


def _make_empty_embedders(folder: Path, hyper: NetworkHyper, width: int, trust_remote_code: bool) -> NewEmbedder:
    """Return a factory of embedders whose weights are yet to be read."""
    if not (folder / ENCODER).is_dir():
        path = folder / VOCABULARY
        words = read_json(path)
        vocabulary = Vocabulary(words, hyper.lowercase)
        return lambda layers: WordEmbedder(vocabulary, width)
    import transformers

    silence()
    config = transformers.AutoConfig.from_pretrained(folder / ENCODER, trust_remote_code=trust_remote_code)
    lexicon = SubwordLexicon(CutWords(load_tokenizer(str(folder / ENCODER), trust_remote_code)))
    new: Any = partial(transformers.AutoModel.from_config, config, trust_remote_code=trust_remote_code)
    return lambda layers: EncoderEmbedder(new(), lexicon, hyper.window, layers)
