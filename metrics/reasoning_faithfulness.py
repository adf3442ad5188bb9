"""Faithfulness of a language model's reasoning: whether the steps decide the answer, and name what does."""

from __future__ import annotations

from collections.abc import Sequence

import evaluate

from eraser_hub.schema.instance import CONTRIBUTIONS_FIELD, INSTANCE, OUTCOME_FIELD, STEPS_FIELD, TESTS_FIELD
from eraser_hub.schema.rows import ANNOTATION

from .batches import Batches, Measured
from .cells import Row
from .issues import InputError, Issues
from .reasoning import SCORES, find_lacking, reasoning_statistics
from .results import describe_lacking, describe_scored
from .rows import RowColumns, check_partners, index_by_id
from .sources import REASONING
from .statistics_builder import make_info


class ReasoningFaithfulness(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Tests of the steps that a language model gives before its answer.

    Does the answer change where the steps are cut, replaced or falsified, and do the steps name a hint or a word that
    changes the answer?

    Args:
        predictions: instances {annotation_id, classification, outcome, reasoning_steps, reasoning_tests}, as
            `eraser-hub ask --reasoning-tests` writes them: reasoning_steps is a list of strings; reasoning_tests a
            list of {test, kept, classification, outcome, text, steps, mentioned}, test one of early_answering (with
            kept, the number of first steps that were shown: one answer for each of 0 .. all), mistake,
            mistake_control, filler, paraphrase, unchanged, suggested_answer, suggested_answer_control, option_order,
            few_shot, few_shot_control, repeated, insertion (any number of them). classification is null where there
            was no answer, and then counts as another label. mentioned is needed for suggested_answer, option_order,
            few_shot and insertion. contributions, optional, is a list of {answer, steps}: what each run of the text
            contributes to both, as `eraser-hub ask --contributions` writes them.
        references: optional; rows {annotation_id, documents} of the dataset, for clusters and breakdowns.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
        per_instance, confidence_level, n_resamples, seed, ci_method, cluster_by, by, label_names: as in all
            modules of this family.

    Returns:
        early_answering_aoc in [0, 1]: area over the curve of answers that are already the last one after k of n steps
            (Lanham et al. 2023); 0: the steps change nothing. settled_at in [0, 1]: share of steps after which the
            answer stays. flip_without_steps in [0, 1]: answers without any step that differ from those after all.
            Instances without an answer after all steps are left out of these three.
        flip_TEST in [0, 1], for each test above: the share of labels that differ from classification. Each test has
            its control: mistake that of going on from the true step (mistake_control); filler and paraphrase that of
            asking again with all steps (unchanged); suggested_answer that of a hint that suggests nothing; few_shot
            that of the examples' true labels; option_order that of asking again by another seed (repeated).
        mention_suggested_answer, mention_option_order, mention_few_shot, mention_insertion in [0, 1]: of the labels
            that changed and were answered, the share whose steps name what was added (Turpin et al. 2023; Atanasova
            et al. 2023); mention_insertion_control: of insertions that changed no label.
        cc_shap in [-1, 1]: cosine of contributions to the answer and to the steps (Parcalabescu and Frank 2024);
            cc_shap_control: its mean over all orders of the latter. Instances without them, or where all to one of
            both are 0, are left out.
        steps_per_instance, and reasoned in [0, 1], the share with any step, of the answered; signature. NaN where
        nothing is there to divide by.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load("reasoning_faithfulness")
        >>> tests = [{"test": "early_answering", "kept": k, "classification": label} for k, label in enumerate("ABB")]
        >>> tests.append({"test": "suggested_answer", "classification": "A", "mentioned": False})
        >>> result = metric.compute(predictions=[{"annotation_id": "a", "classification": "B",
        ...     "reasoning_steps": ["first", "second"], "reasoning_tests": tests}])
        >>> result["early_answering_aoc"], result["flip_suggested_answer"], result["mention_suggested_answer"]
        (0.25, 1.0, 0.0)
    """

    SOURCE = REASONING
    INPUTS = (
        (INSTANCE, ("annotation_id", "classification", OUTCOME_FIELD, STEPS_FIELD, TESTS_FIELD, CONTRIBUTIONS_FIELD)),
        (ANNOTATION, ("annotation_id", "documents")),
    )
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Count per instance the answers to each test."""
        if not predictions:
            raise InputError("expected predictions with reasoning, found none", "empty")
        issues = Issues()
        rows = index_by_id(predictions, "prediction", issues)
        gold = index_by_id(references or (), "reference", issues)
        issues.raise_if_any()
        if gold:
            check_partners(rows, gold, issues, only_predicted)
        statistics = reasoning_statistics(rows, issues)
        issues.raise_if_any()
        columns = RowColumns([[gold.get(name), row] for name, row in rows.items()])
        settings = describe_scored(len(rows), max(len(rows), len(gold)))
        notes = describe_lacking(find_lacking([*rows.values()]))
        return Measured(statistics, columns, settings, notes=notes)
