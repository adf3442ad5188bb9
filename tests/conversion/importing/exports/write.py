"""Writes the exports of this folder that tools' own libraries can write, and checks the others with them.

    pip install dkpro-cassis label-studio-sdk
    python tests/conversion/importing/exports/write.py

The texts are of this project's own writing. Doccano's, brat's and Prodigy's files follow their documented
formats by hand: these tools have no library that writes them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TEXTS = ("A warm 😀 and funny film. It drags a little.", "Dull from the first scene.")
RATIONALE, VERDICT, LINK = "webanno.custom.Rationale", "webanno.custom.Verdict", "webanno.custom.Evidence"
TOKEN, SENTENCE = (f"de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.{name}" for name in ("Token", "Sentence"))


def write_cas() -> None:
    """A file for each text as JSON, and the first as XMI, by dkpro-cassis."""
    from cassis import Cas, TypeSystem

    for number, text in enumerate(TEXTS, 1):
        types = TypeSystem()
        token, sentence = types.create_type(TOKEN), types.create_type(SENTENCE)
        rationale = types.create_type(RATIONALE)
        verdict = types.create_type(VERDICT, supertypeName="uima.cas.AnnotationBase")
        types.create_feature(verdict, "label", "uima.cas.String")
        cas = Cas(types)
        cas.sofa_string, cas.sofa_mime = text, "text/plain"
        place = 0
        for one in text.replace(". ", ".\n").split("\n"):
            cas.add(sentence(begin=place, end=place + len(one)))
            at = place
            for word in one.rstrip(".").split(" "):
                cas.add(token(begin=at, end=at + len(word)))
                at += len(word) + 1
            cas.add(token(begin=place + len(one) - 1, end=place + len(one)))
            place += len(one) + 1
        start, end = ((2, 18), (0, 4))[number - 1]
        cas.add(rationale(begin=start, end=end))
        cas.add(verdict(label=("good", "bad")[number - 1]))
        folder = HERE / "cas"
        folder.mkdir(exist_ok=True)
        cas.to_json(folder / f"film{number}.json", pretty_print=True)
        if number == 1:
            cas.to_xmi(HERE / "film.xmi", pretty_print=True)


def write_label_studio() -> None:
    """JSON_MIN from label-studio.json, by label-studio-sdk's converter."""
    from label_studio_sdk.converter import Converter

    config = """<View><Labels name="why" toName="text"><Label value="RATIONALE"/></Labels>
        <Text name="text" value="$review"/>
        <Choices name="verdict" toName="text"><Choice value="good"/><Choice value="bad"/></Choices></View>"""
    with tempfile.TemporaryDirectory() as folder:
        Converter(config, project_dir=None).convert_to_json_min(str(HERE / "label-studio.json"), folder, is_dir=False)
        (found,) = Path(folder).glob("*.json")
        rows = json.loads(found.read_text(encoding="utf-8"))
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    (HERE / "label-studio-min.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_cas()
    write_label_studio()
