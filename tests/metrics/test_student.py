"""Student's t, held against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eraser_hub.metrics.student import quantile, two_sided_p

pytestmark = pytest.mark.unit
DEGREES = (0.5, 1, 2, 3.7, 10, 55, 1000, 1e5)


@pytest.mark.parametrize("df", DEGREES)
def test_agrees_with_scipy(df):
    t = np.array([0, 1e-6, 0.1, 1, 2, 5, 40, 1e6])
    assert np.allclose(two_sided_p(t, df), 2 * stats.t.sf(t, df), rtol=1e-8, atol=1e-300)
    assert two_sided_p(-t, df).tolist() == two_sided_p(t, df).tolist()
    for p in (0.5, 0.8, 0.95, 0.975, 0.999):
        assert quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-8, abs=1e-8)


def test_infinite_and_undefined_statistics():
    assert two_sided_p([np.inf, -np.inf], 3).tolist() == [0, 0]
    assert np.isnan(two_sided_p([np.nan, 1.0], [3, np.nan])).all() and np.isnan(quantile(0.9, np.nan))
