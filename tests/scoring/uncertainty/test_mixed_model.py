"""The model of documents and runs, held against closed forms, statsmodels and simulated coverage."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from eraser_hub.scoring.paired_tests import Pair
from eraser_hub.scoring.uncertainty.mixed_model import compute_influences, fit_difference, fit_system
from eraser_hub.scoring.uncertainty.reml import fit_reml

from ...metrics.test_resampling import ratio
from ...refusals import refused

pytestmark = pytest.mark.unit


def crossed(n=40, runs=6, spreads=(0.3, 0.2, 0.1), seed=1):
    random = np.random.default_rng(seed)
    documents, between, rest = spreads
    return (
        random.normal(0, documents, (n, 1)) + random.normal(0, between, (1, runs)) + random.normal(0, rest, (n, runs))
    )


def test_components_are_the_closed_forms_of_a_two_way_table():
    y = crossed()
    n, runs = y.shape
    rows, columns = y.mean(axis=1), y.mean(axis=0)
    rest = ((y - rows[:, None] - columns + y.mean()) ** 2).sum() / ((n - 1) * (runs - 1))
    found = fit_system(y).components
    assert float(found.interaction) == pytest.approx(rest, abs=1e-9)
    assert float(found.runs) == pytest.approx(columns.var(ddof=1) - rest / n, abs=1e-9)
    assert float(found.documents) == pytest.approx(rows.var(ddof=1) - rest / runs, abs=1e-9)
    assert float(found.draws) == 0


def test_draws_within_runs_are_a_component_of_their_own():
    random = np.random.default_rng(3)
    runs = np.repeat(np.arange(4), 5)
    y = crossed(50, 20, (0.3, 0.15, 0.1)) + random.normal(0, 0.4, 4)[runs]
    found = fit_system(y, runs.tolist()).components
    means = y.mean(axis=0).reshape(4, 5)
    rest = y - y.mean(axis=0)
    cells = rest.reshape(50, 4, 5)
    within = ((cells - cells.mean(axis=2, keepdims=True)) ** 2).sum() / (49 * 4 * 4)
    between = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum() / (4 * 4) - within / 50
    assert float(found.draws) == pytest.approx(between, abs=1e-9)
    crossing = means.mean(axis=1)
    lines = cells.mean(axis=2) - cells.mean(axis=(1, 2))[:, None]
    crossed_square = 5 * (lines**2).sum() / (49 * 3)
    run_level = crossing.var(ddof=1) - crossed_square / (50 * 5)
    assert float(found.runs) == pytest.approx(run_level - between / 5, abs=1e-9)
    order = random.permutation(20)
    turned = fit_system(y[:, order], runs[order].tolist()).components
    assert turned.as_dict() == pytest.approx(found.as_dict())
    one = fit_system(y[:, :5], [0] * 5)
    assert float(one.components.runs) == 0 and float(one.level) > 0
    assert float(one.level) == pytest.approx(float(one.draws))


def test_a_single_run_has_documents_alone():
    y = crossed(runs=1)
    model = fit_system(y)
    assert model.components.as_dict() == {
        "documents": pytest.approx(y.var(ddof=1)),
        "runs": 0,
        "interaction": 0,
        "draws": 0,
    }
    assert float(model.level) == 0
    with refused("length", "found 1 and 2"):
        fit_system(y[:1].repeat(2, axis=1))
    with refused("length", "2 runs", "found 40 and 3"):
        fit_system(y.repeat(2, axis=1), [0, 1, 2])


def mixedlm(y, runs=None):
    """The variances of documents, runs, draws, and the rest, by statsmodels."""
    import pandas as pd

    smf = pytest.importorskip("statsmodels.formula.api")
    n, files = y.shape
    frame = pd.DataFrame({"y": y.ravel(), "document": np.repeat(np.arange(n), files), "all": 1})
    frame["file"] = np.tile(np.arange(files), n)
    parts = {"document": "0 + C(document)", "file": "0 + C(file)"}
    if runs is not None:
        frame["run"] = np.tile(runs, n)
        parts["run"] = "0 + C(run)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = smf.mixedlm("y ~ 1", frame.dropna(), groups="all", vc_formula=parts, re_formula="0")
        fit = model.fit(reml=True, method="lbfgs")
    found = dict(zip(fit.model.exog_vc.names, fit.vcomp, strict=True)) | {"rest": fit.scale}
    return [
        found["document"],
        found["file" if runs is None else "run"],
        0 if runs is None else found["file"],
        found["rest"],
    ]


def test_balanced_components_meet_reml_and_statsmodels():
    y = crossed()
    found = fit_system(y).components
    ours = [float(found.documents), float(found.runs), 0, float(found.interaction)]
    assert list(fit_reml(y, np.arange(6))) == pytest.approx(ours, abs=1e-6)
    assert mixedlm(y) == pytest.approx(ours, abs=1e-4)


def test_missing_cells_and_unequal_draws_meet_statsmodels():
    random = np.random.default_rng(5)
    y = crossed()
    y[random.random(y.shape) < 0.2] = np.nan
    assert list(fit_reml(y, np.arange(6))) == pytest.approx(mixedlm(y), abs=1e-4)
    found = fit_system(y).components
    assert [float(found.documents), float(found.interaction)] == pytest.approx(np.array(mixedlm(y))[[0, 3]], abs=1e-4)
    runs = np.array([0, 0, 0, 1, 1, 2])
    y = crossed(spreads=(0.3, 0.1, 0.1)) + random.normal(0, 0.3, 3)[runs]
    found = fit_system(y, runs.tolist()).components
    ours = [float(getattr(found, name)) for name in ("documents", "runs", "draws", "interaction")]
    assert ours == pytest.approx(mixedlm(y, runs), abs=1e-4)


def test_influences_of_a_mean_are_its_values_and_of_a_ratio_have_it_as_mean():
    values = np.random.default_rng(0).normal(size=(9, 2))
    left_out = (values.sum(axis=0) - values) / 8
    assert compute_influences(values.mean(axis=0), left_out) == pytest.approx(values)
    rows = np.column_stack([values[:, 0], np.arange(1.0, 10)])
    model = Pair([rows], [rows * [0, 1]], ratio).models()["ratio"]
    assert float(model.difference) == pytest.approx(rows[:, 0].sum() / 45)


def test_one_run_each_is_the_paired_t_test():
    first = crossed(30, 1, seed=2)
    half = np.random.default_rng(3).uniform(0.1, 1, 15)
    second = first - 0.2 - np.concatenate([half, -half])[:, None]  # neither skew nor peaked
    model = fit_difference(first, second)
    theirs = stats.ttest_rel(first[:, 0], second[:, 0])
    # no document carries more than its share
    assert float(model.clusters) == pytest.approx(30) and float(model.p_value()) == pytest.approx(theirs.pvalue)
    assert model.interval(0.9) == pytest.approx(tuple(theirs.confidence_interval(0.9)))


def test_the_parts_add_up_to_the_squared_standard_error():
    first, second = crossed(30, 4, seed=4), crossed(30, 3, seed=5)
    model = fit_difference(first, second)
    documents = (first.mean(axis=1) - second.mean(axis=1)).var(ddof=1) / 30
    runs = sum(float(fit_system(own).components.runs) / own.shape[1] for own in (first, second))
    rest = sum(float(fit_system(own).components.interaction) / own.size for own in (first, second))
    assert model.components.as_dict() == {
        "documents": pytest.approx(documents - rest),
        "runs": pytest.approx(runs),
        "interaction": pytest.approx(rest),
        "draws": 0,
    }
    assert float(model.standard_error) ** 2 == pytest.approx(documents + runs)
    assert model.df < 12, "a few runs carry most of the variance"


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_equal_systems_are_called_different_as_often_as_said(spread):
    random = np.random.default_rng(8)
    shape, runs, n = (2000, 60, 3), 3, 60
    documents = random.normal(0, 0.2, (2000, n, 1))
    first, second = (
        documents + random.normal(0, spread, (2000, 1, runs)) + random.normal(0, 0.1, shape) for _ in range(2)
    )
    model = fit_difference(first, second)
    # 2,000 tests at .05: three standard errors of the share are .015
    assert 0.02 <= np.mean(model.p_value() <= 0.05) <= 0.07
    far = fit_difference(first + 0.3, second)
    far = replace(far, difference=far.difference - 0.3).p_value()
    assert np.mean(far > 0.05) >= 0.93


def test_the_detectable_difference_is_found_four_times_of_five():
    random = np.random.default_rng(2)
    first = random.normal(0, 1, (2000, 40, 1))
    second = random.normal(0, 1, (2000, 40, 1))
    size = np.mean([fit_difference(a, b).detectable() for a, b in zip(first[:50], second[:50], strict=True)])
    found = np.mean(fit_difference(first + size, second).p_value() <= 0.05)
    assert found == pytest.approx(0.8, abs=0.03)


def test_the_interval_holds_what_the_test_does_not_reject():
    random = np.random.default_rng(6)
    first, second = random.exponential(1, (25, 3)), np.zeros((25, 3))
    model = fit_difference(first, second)
    low, high = model.interval(0.95)
    assert float(model.skewness) > 0 and high - float(model.difference) > float(model.difference) - low
    ends = [replace(model, difference=model.difference - end).p_value() for end in (low, high)]
    assert [float(p) for p in ends] == pytest.approx([0.05, 0.05], abs=1e-6)
    turned = fit_difference(second, first)
    assert turned.interval(0.95) == pytest.approx((-high, -low))


def test_runs_of_the_same_trainings_are_paired():
    random, n, runs = np.random.default_rng(0), 40, 4
    moved = random.normal(0, 0.3, (1, runs))
    first, second = (random.normal(size=(n, 1)) + moved + random.normal(0, 0.1, (n, runs)) for _ in range(2))
    paired, apart = fit_difference(first, second, shared=True), fit_difference(first, second)
    assert apart.components.runs > 50 * paired.components.runs
    assert paired.difference == apart.difference and paired.clusters == apart.clusters
    # without documents that differ it is the paired t test of the runs' scores
    first, second = np.zeros((n, runs)) + random.normal(size=runs), np.zeros((n, runs)) + random.normal(size=runs)
    model = fit_difference(first, second, shared=True)
    assert model.df == pytest.approx(runs - 1)
    theirs = stats.ttest_rel(first.mean(axis=0), second.mean(axis=0))
    assert model.difference / model.standard_error == pytest.approx(theirs.statistic)


def test_draws_of_paired_runs_are_averaged():
    random = np.random.default_rng(1)
    first, second = random.normal(size=(30, 6)), random.normal(size=(30, 3))
    model = fit_difference(first, second, [0, 0, 1, 1, 2, 2], [1, 2, 0], shared=True)
    by_run = first.reshape(30, 3, 2).mean(axis=-1)
    assert model.standard_error == pytest.approx(
        fit_difference(by_run, second[:, [2, 0, 1]], shared=True).standard_error
    )


def test_paired_runs_reject_a_true_null_as_often_as_they_say():
    random, samples, n, runs = np.random.default_rng(2), 2000, 30, 3
    training, own = random.normal(0, 0.2, (2, samples, 1, runs)) * [[[[1.0]]], [[[0.0]]]]

    def draw():
        return random.normal(0, 0.3, (samples, n, 1)) + training + random.normal(0, 0.1, (samples, n, runs)) + own

    model = fit_difference(draw(), draw(), shared=True)
    assert np.mean(model.p_value() <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(model.p_value() <= 0.05) > 2 * np.mean(fit_difference(draw(), draw()).p_value() <= 0.05)


def test_equal_files_in_unequal_draws_leave_nothing_but_documents():
    values = np.repeat(np.random.default_rng(3).normal(size=(24, 1)), 3, axis=1)
    assert fit_reml(values, np.array([0, 1, 1])) == (pytest.approx(values[:, 0].var(ddof=1)), 0, 0, 0)
