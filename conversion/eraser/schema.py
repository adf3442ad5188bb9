"""Arrow schema of ``eraser``."""

from __future__ import annotations

import pyarrow as pa

# a row per text and person, in corpus folders and built datasets; `annotator_agreement` reads them
ANNOTATORS = pa.schema(
    [
        ("annotation_id", pa.string()),
        ("annotator", pa.string()),
        ("label", pa.string()),  # null: not known
        ("rationale_positions", pa.list_(pa.list_(pa.int32()))),  # per document; null: not known
        ("split", pa.string()),
        ("docids", pa.list_(pa.string())),
        ("num_tokens", pa.list_(pa.int32())),
    ]
)

DOCUMENT = pa.struct([("docid", pa.string()), ("text", pa.string())])
EVIDENCE = pa.struct(
    [
        ("docid", pa.string()),
        ("text", pa.string()),
        ("start_token", pa.int32()),
        ("end_token", pa.int32()),
        ("start_sentence", pa.int32()),
        ("end_sentence", pa.int32()),
    ]
)
SCHEMA = pa.schema(
    [
        ("annotation_id", pa.string()),
        ("query", pa.string()),
        ("classification", pa.int64()),
        ("label", pa.string()),  # its name, for SQL and pandas
        ("rationale", pa.string()),
        ("documents", pa.list_(DOCUMENT)),
        ("evidences", pa.list_(pa.list_(EVIDENCE))),
        ("rationale_positions", pa.list_(pa.list_(pa.int32()))),
        ("num_tokens", pa.int32()),
        ("num_sentences", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("query_type", pa.string()),
        ("position", pa.int32()),
    ]
)
