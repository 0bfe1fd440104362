"""The paper's printed accuracies are those that reports compare with, every mean and every deviation."""

from collections.abc import Mapping
from typing import Any

import pytest

from clarinet.reproduction.paper import ABLATION, CC, TRUE_ONLY, WITH_TRUE, Printed

NUMBERS = (200, 400, 600, 800, 1000)

# A row for each task, a column for each method or number of true labels; mean+-deviation.
COMPLEMENTARY_ALONE = """
C->T 45.167 45.711+-0.535 45.628+-0.572 45.228+-0.270 47.083+-1.395
U->M 51.860 60.692+-1.300 77.580+-0.770 71.498+-1.077 83.692+-0.928
M->U 77.796 87.215+-0.603 88.688+-1.280 92.366+-0.365 94.538+-0.292
S->M 39.260 45.132+-1.363 50.882+-2.440 61.922+-2.983 63.070+-1.990
M->m 45.045 43.346+-2.224 62.273+-2.261 71.379+-0.620 71.717+-1.262
Y->M 77.070 81.150+-0.591 92.328+-0.138 95.532+-0.873 97.040+-0.212
Y->S 72.480 78.270+-0.311 75.147+-1.401 82.878+-0.278 84.499+-0.537
"""
TRUE_ALONE = """
C->T 11.839+-0.019 13.875+-1.366 17.722+-2.626 19.278+-0.853 20.972+-1.061
U->M 74.180+-1.218 79.200+-0.837 82.532+-0.859 85.800+-0.621 88.184+-1.280
M->U 78.011+-1.473 83.204+-1.545 83.925+-1.511 85.839+-2.074 85.699+-0.777
S->M 25.772+-0.146 41.232+-1.089 41.680+-0.525 51.652+-0.850 53.500+-1.872
M->m 59.414+-1.381 59.805+-0.951 63.757+-1.344 65.161+-0.766 68.522+-1.285
Y->M 49.232+-1.354 60.640+-1.570 76.802+-1.649 85.286+-1.363 86.470+-1.646
Y->S 23.009+-1.102 49.120+-1.236 67.922+-1.079 67.788+-1.878 74.654+-1.054
"""
BOTH = """
C->T 49.408+-1.776 49.553+-1.362 50.897+-0.969 51.058+-1.737 53.297+-1.655
U->M 88.584+-1.040 89.480+-1.660 90.358+-1.938 91.106+-0.561 93.342+-1.294
M->U 93.204+-1.398 94.677+-0.576 94.839+-0.254 94.796+-0.104 95.022+-0.280
S->M 64.734+-2.096 64.912+-0.928 67.898+-1.625 70.416+-1.819 70.446+-1.358
M->m 70.730+-1.620 71.198+-0.623 72.732+-0.947 73.050+-1.264 73.336+-0.727
Y->M 97.182+-0.383 97.242+-0.117 97.178+-0.396 96.842+-0.267 96.948+-0.266
Y->S 84.269+-0.814 85.538+-0.596 85.921+-1.098 86.772+-0.291 87.024+-0.542
"""
WITHOUT_A_PART = """
C->T 6.481+-2.536 41.908+-2.796 43.075+-2.553
U->M 0.455+-0.722 84.302+-1.127 83.192+-1.796
M->U 0.055+-0.129 93.301+-0.465 93.419+-0.588
S->M 3.708+-0.688 44.500+-2.088 52.438+-1.927
M->m 7.088+-0.424 70.994+-0.749 72.128+-1.569
Y->M 1.832+-0.102 94.382+-0.150 95.442+-1.004
Y->S 1.298+-0.070 83.408+-0.545 83.055+-0.652
"""


def cells_of(table: str, columns: tuple[str, ...] | tuple[int, ...]) -> dict[tuple[str, Any], Printed]:
    cells: dict[tuple[str, Any], Printed] = {}
    for row in table.strip().splitlines():
        task, *values = row.split()
        for column, value in zip(columns, values, strict=True):
            cells[task, column] = Printed(*map(float, value.split("+-")))
    return cells


@pytest.mark.parametrize(
    ("found", "table", "columns"),
    [
        (CC, COMPLEMENTARY_ALONE, ("gac", "gac+dan", "gac+dann", "gac+cdan_e", "clarinet")),
        (TRUE_ONLY, TRUE_ALONE, NUMBERS),
        (WITH_TRUE, BOTH, NUMBERS),
        (ABLATION, WITHOUT_A_PART, ("clarinet-ce", "clarinet-unconditioned", "clarinet-unsharpened")),
    ],
    ids=["cc", "true only", "with true", "ablation"],
)
def test_every_cell_is_as_printed(
    found: Mapping[tuple[str, Any], Printed], table: str, columns: tuple[str, ...] | tuple[int, ...]
) -> None:
    assert found == cells_of(table, columns)
