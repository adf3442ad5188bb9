"""Writes the exports of this folder that a tool's own library can write.

    pip install dkpro-cassis
    python tests/conversion/importing/exports/write.py

The texts are of this project's own writing. The other files follow the tools' documented formats by hand.
"""

from __future__ import annotations

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
            folder = HERE / "xmi"
            folder.mkdir(exist_ok=True)
            cas.to_xmi(folder / "film.xmi", pretty_print=True)
            types.to_xml(folder / "TypeSystem.xml")


if __name__ == "__main__":
    write_cas()
