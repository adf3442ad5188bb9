"""A network's folder: ``config.json`` with every hyper-parameter, weights, vocabulary or the encoder's tokenizer.

out/config.json           the system, its hyper-parameters, what the data decided
out/weights.safetensors   all weights, those of an encoder too
out/vocabulary.json       the words of a network without encoder
out/encoder/              an encoder's configuration and tokenizer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.words import CutWords, load_tokenizer, not_opened, silence
from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import DataError, shown

from .answers import AnswerNetwork
from .classifiers import AdditiveClassifier, LastStateClassifier, LstmClassifier
from .embedders import Embedder, EncoderEmbedder, WordEmbedder
from .embeddings import embeddings_for
from .lei import Lei
from .matching import AnswerPointer, MatchLstm
from .network_model import NetworkModel
from .sentences import SentenceReader
from .systems import SYSTEMS, Hyper, LeiHyper, NetworkHyper
from .token_network import Shape, TokenNetwork
from .vocabulary import SPECIAL, SubwordLexicon, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WEIGHTS, VOCABULARY, ENCODER, CONFIG = "weights.safetensors", "vocabulary.json", "encoder", "config.json"
CLASSES: dict[str, type[TokenNetwork]] = {
    "lstm": LstmClassifier,
    "match-lstm": MatchLstm,
    "bilstm": LastStateClassifier,
    "glove-lstm": AdditiveClassifier,
    "bert-lstm": AdditiveClassifier,
    "lei": Lei,
    "lei-unsupervised": Lei,
    "lehman": SentenceReader,
}
NewEmbedder = Callable[[int], Embedder]  # takes the number of layers to train


@dataclass(frozen=True, slots=True)
class VectorSource:
    """What a new network's vectors come from.

    Attributes:
        encoder: a transformers folder or Hub id; "" for a table of words.
        embeddings: a file of word vectors; None for learned ones.
        trust_remote_code: run the code that the encoder brings along.
    """

    encoder: str = ""
    embeddings: Path | None = None
    trust_remote_code: bool = False


def network_of(name: str, hyper: NetworkHyper, shape: Shape, new_embedder: NewEmbedder) -> TokenNetwork:
    """An untrained network of the system of that name."""
    embedder = new_embedder(hyper.trained_layers)
    if isinstance(hyper, LeiHyper):
        return Lei(embedder, hyper, shape, new_embedder(hyper.generator_layers))
    if shape.answers:
        return AnswerPointer(embedder, hyper, shape)
    return CLASSES[name](embedder, hyper, shape)


def embedders_from(
    source: VectorSource, hyper: NetworkHyper, instances: Sequence[Instance], seed: int, say: Callable[[str], None]
) -> NewEmbedder:
    """Makes embedders for the words of training instances.

    Raises:
        DataError: an encoder that cannot be opened, embeddings that cannot be read.
    """
    if source.encoder:
        import transformers

        silence()
        try:
            tokenizer = load_tokenizer(source.encoder, source.trust_remote_code)
            lexicon = SubwordLexicon(CutWords(tokenizer))

            def encoder() -> PreTrainedModel:
                opened: PreTrainedModel = transformers.AutoModel.from_pretrained(
                    source.encoder, trust_remote_code=source.trust_remote_code
                )
                return opened

            encoder()
        except DataError:
            raise
        except Exception as error:  # transformers raises many kinds
            raise not_opened(error, source.encoder) from error
        return lambda layers: EncoderEmbedder(encoder(), lexicon, hyper.window, layers)
    texts = [words for one in instances for words in (one.query, *one.documents)]
    vocabulary = Vocabulary.of(texts, hyper.lowercase, hyper.min_count)
    vectors = None if source.embeddings is None else embeddings_for(source.embeddings, vocabulary, seed, say)
    width = hyper.embedding_size if vectors is None else vectors.shape[1]
    return lambda layers: WordEmbedder(vocabulary, width, vectors)


def save_network(network: TokenNetwork, config: dict[str, Any], out: Path) -> None:
    """Write the network into its folder.

    Args:
        config: what ``config.json`` holds beside the hyper-parameters: ``system``, ``label_names``, ``uses_query``.
    """
    out.mkdir(parents=True, exist_ok=True)
    embedder = network.embedder
    if isinstance(embedder, EncoderEmbedder):
        embedder.encoder.config.save_pretrained(out / ENCODER)
        embedder.subwords.words.tokenizer.save_pretrained(out / ENCODER)
    elif isinstance(embedder.lexicon, Vocabulary):
        words = embedder.lexicon.words[len(SPECIAL) :]
        (out / VOCABULARY).write_text(json.dumps(words, ensure_ascii=False, indent=0) + "\n", "utf-8")
    with replacing(out / WEIGHTS) as beside:
        save_model(network, str(beside))
    whole = {**config, "hyper": asdict(network.hyper), "shape": asdict(network.shape), "width": embedder.width}
    with replacing(out / CONFIG) as beside:
        beside.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", "utf-8")


def open_network(
    folder: Path,
    *,
    uses_query: bool | None = None,
    window: int | None = None,
    device: str | None = None,
    precision: str = "auto",
    trust_remote_code: bool = False,
) -> NetworkModel:
    """Open a folder of :func:`save_network`.

    Args:
        uses_query, window, device, precision, trust_remote_code: as for :func:`eraser_hub.attribution.open_model`.

    Raises:
        DataError: a file that is missing or damaged, or was written by another version.
    """
    config = _config(folder)
    try:
        name = config["system"]
        hyper = _hyper(SYSTEMS[name].hyper, {**config["hyper"], **({} if window is None else {"window": window})})
        shape, labels = Shape(**config["shape"]), config["label_names"]
        new_embedder = _empty_embedders(folder, hyper, config["width"], trust_remote_code)
        network = network_of(name, hyper, shape, new_embedder)
        load_model(network, str(folder / WEIGHTS))
    except DataError as error:
        raise error if error.file else error.at(file=folder / CONFIG) from error
    except (KeyError, TypeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        words = f"cannot be opened as a network of `train`: {shown(str(error))}"
        raise DataError(words, rule="model", file=folder) from error
    asks = config.get("uses_query", False) if uses_query is None else uses_query
    kind = AnswerNetwork if shape.answers else NetworkModel
    return kind(
        network, labels, uses_query=asks, device=device, precision=precision, description=f"{name} {folder.name}"
    )


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text("utf-8"))
        return config
    except (OSError, ValueError) as error:
        raise DataError(f"expected a network's config.json: {error}", rule="model", file=folder / CONFIG) from error


def _hyper(like: Hyper, values: dict[str, Any]) -> NetworkHyper:
    names = [field.name for field in fields(like)]
    strange = [name for name in values if name not in names]
    if strange:
        words = f"expected hyper-parameters among {', '.join(names)}; found {shown(strange[0])}"
        raise DataError(words, rule="key-unknown")
    return type(like)(**values)  # type: ignore[return-value]


def _empty_embedders(folder: Path, hyper: NetworkHyper, width: int, trust_remote_code: bool) -> NewEmbedder:
    """Embedders whose weights are yet to be read."""
    if not (folder / ENCODER).is_dir():
        words = json.loads((folder / VOCABULARY).read_text("utf-8"))
        vocabulary = Vocabulary(words, hyper.lowercase)
        return lambda layers: WordEmbedder(vocabulary, width)
    import transformers

    silence()
    config = transformers.AutoConfig.from_pretrained(folder / ENCODER, trust_remote_code=trust_remote_code)
    lexicon = SubwordLexicon(CutWords(load_tokenizer(str(folder / ENCODER), trust_remote_code)))
    new: Callable[..., PreTrainedModel] = transformers.AutoModel.from_config
    return lambda layers: EncoderEmbedder(
        new(config, trust_remote_code=trust_remote_code), lexicon, hyper.window, layers
    )
