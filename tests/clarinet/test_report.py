"""The report of `clarinet reproduce`: tables beside the paper's own numbers, and charts."""

import re
import statistics
import xml.etree.ElementTree as ET

import pytest

from clarinet.reproduction.charts import Series, line_chart
from clarinet.reproduction.grouping import grouped
from clarinet.reproduction.paper import ABLATION, CC, TRUE_ONLY, WITH_TRUE, Printed
from clarinet.reproduction.report import markdown, tables
from clarinet.reproduction.report_files import curves
from clarinet.reproduction.results import upgraded
from clarinet.reproduction.tasks import PAPER_TASKS
from tests.clarinet.factories import make_record, make_trial


class TestReport:
    def test_each_kind_of_trial_has_its_table(self) -> None:
        records = [
            make_record(0.9),
            make_record(0.8, setting="pc", true_labels=200),
            make_record(0.7, answers=750),
            make_record(0.6, label_noise=0.02),
        ]

        found = tables(grouped(records))

        assert {name: rows[1][-2:] for name, rows in found.items()} == {
            "cc": ["90.00", "83.69 +- 0.93 (CLARINET)"],
            "pc": ["80.00", "88.58 +- 1.04 (CLARINET)"],
            "answers": ["70.00", "-"],
            "noise": ["60.00", "-"],
        }
        assert found["answers"][1][3:5] == ["750", "cc"]
        assert found["noise"][1][3:5] == ["2 %", "cc"]

    def test_a_deviation_that_would_reach_beyond_100_gives_way_to_the_lowest_and_highest_seed(self) -> None:
        far = [make_record(accuracy, seed=seed) for seed, accuracy in enumerate((0.8, 0.99, 0.99))]
        near = [make_record(accuracy, seed=seed, answers=750) for seed, accuracy in enumerate((0.8, 0.84))]

        found = tables(grouped([*far, *near]))

        assert found["cc"][1][-2] == "92.67, 80.00 to 99.00"  # 92.67 +- 10.97 would be 103.64
        assert found["answers"][1][-2] == "82.00 +- 2.83"

    def test_different_trainings_are_told_apart_in_tables_and_charts(self) -> None:
        other = (*make_trial().changes, ("average_decay", 0.5))
        records = [
            make_record(0.9),
            make_record(0.8, changes=other),
            make_record(0.7, answers=750),
            make_record(0.6, answers=750, label_noise=0.3),
            make_record(0.5, answers=750, setting="pc", true_labels=200),
        ]

        found, charts = tables(grouped(records)), curves(grouped(records))

        assert [row[4] for row in found["answers"][1:]] == ["cc", "cc, 30 % wrong", "pc, 200 true"]
        assert "noise" not in found
        texts = {name: re.findall(">(clarinet-plus [^<]*)<", svg) for name, svg in charts.items()}
        assert len(set(texts["U-M-cc.svg"])) == 2
        assert sum("average_decay=0.5" in text for text in texts["U-M-cc.svg"]) == 1
        assert len(set(texts["U-M-answers.svg"])) == 3
        times = re.findall(
            r"^(\|.*\| 0 +)\| 1 +\|$", markdown(records), re.MULTILINE
        )  # of seed 0, one second
        assert len(times) == len(set(times)) == len(records)

    def test_results_of_older_hyper_parameters_are_left_out_and_counted(self) -> None:
        old, new = make_record(0.5, finished="2026-01-01"), make_record(0.9, finished="2026-02-01", seed=1)
        old["config"]["learning_rate"] = 1.0

        assert tables(grouped([old, new]))["cc"][1][-2] == "90.00"
        assert "1 result of other data or hyper-parameters" in markdown([old, new])

    def test_what_a_preset_has_changed_in_since_is_told_as_it_is_typed(self) -> None:
        as_now, before, elsewhere = (make_record(0.9, task=task) for task in ("M->m", "U->M", "M->U"))
        for record in (before, elsewhere):
            record["config"] |= {"complementary_loss": "scarce", "learning_rate": 0.5}
            del record["config"]["extra_stroke"]  # of a version that did not know it: then as with 0

        records = [upgraded(record) for record in (as_now, before, elsewhere)]
        told = re.findall(r"^\* clarinet-plus, .*$", markdown(records), re.MULTILINE)

        changes = "--set learning_rate=0.5 --set 'complementary_loss=\"scarce\"' --set extra_stroke=0.0"
        assert told == [f"* clarinet-plus, digits (U->M, M->U): `{changes}`"]
        assert "Presets have changed" not in markdown([as_now])

    def test_diverged_trials_are_named(self) -> None:
        assert tables(grouped([make_record(0.9), make_record(None, seed=1)]))["cc"][1][-2] == (
            "90.00 (1 diverged)"
        )
        assert tables(grouped([make_record(None)]))["cc"][1][-2] == "1 diverged"

    def test_the_papers_protocol_alone_is_called_so(self) -> None:
        record = make_record(0.9, method="clarinet", preset="paper", changes=())
        whole = make_record(0.9, method="clarinet", preset="paper", changes=(("held_out_share", 0.0),))

        own = "paper (6 steps; 5 % of the complementary labels held out)"
        assert tables(grouped([record]))["cc"][1][2] == own
        assert tables(grouped([whole]))["cc"][1][2] == "paper, held_out_share=0.0 (6 steps)"

    def test_regenerated_data_is_named_in_every_result(self) -> None:
        record = make_record(0.9)
        record["data"]["source"] = "SYN-DIGITS (regenerated, seed 0)"
        groups = grouped([record])

        assert "SYN-DIGITS (regenerated" in markdown([record])
        assert tables(groups)["cc"][1][0] == "U->M (regenerated)"
        assert all("U-&gt;M (regenerated)" in svg for svg in curves(groups).values())

    def test_all_data_that_results_rest_on_is_named(self) -> None:
        other = make_record(0.8, answers=750)
        other["data"]["digest"] = "another digest"

        text = markdown([make_record(0.9), other])

        assert "| d " in text
        assert "another digest" in text

    def test_the_average_comes_with_the_seventh_task(self) -> None:
        records = [
            make_record(place / 10, task=task, method="gac", changes=(("epochs", 6),), preset="paper")
            for place, task in enumerate(PAPER_TASKS)
        ]
        for steps, record in enumerate(records, start=1000):
            record["result"]["steps"] = steps  # an epoch is one pass over the larger set

        assert [row[0] for row in tables(grouped(records))["cc"]][-1] == "average"
        assert tables(grouped(records))["cc"][-1][-2:] == ["30.00", "58.38"]
        assert [row[0] for row in tables(grouped(records[1:]))["cc"]][-1] == PAPER_TASKS[-1]

    def test_the_ablation_stands_beside_the_whole(self) -> None:
        whole = make_record(0.9, method="clarinet", preset="short", changes=())
        part = make_record(0.8, method="clarinet-unsharpened", preset="short", changes=())

        assert [row[1] for row in tables(grouped([whole, part]))["ablation"][1:]] == [
            "clarinet",
            "clarinet-unsharpened",
        ]
        assert "ablation" not in tables(grouped([whole]))


class TestPaper:
    def test_the_averages_are_the_papers(self) -> None:
        """The paper prints them too, rounded, so that a slip of one digit shows."""

        def mean(cells: list[Printed]) -> float:
            return statistics.fmean(cell.mean for cell in cells)

        by_method = {"gac": 58.383, "gac+dan": 63.074, "gac+dann": 70.361, "gac+cdan_e": 74.400}
        for method, average in (by_method | {"clarinet": 77.377}).items():
            assert mean([cell for (_, name), cell in CC.items() if name == method]) == pytest.approx(
                average, abs=2e-3
            )
        true_only = {200: 45.922, 400: 55.297, 600: 62.049, 800: 65.829, 1000: 68.286}
        for number, average in true_only.items():
            assert mean([c for (_, n), c in TRUE_ONLY.items() if n == number]) == pytest.approx(
                average, abs=2e-3
            )
        with_true = {200: 78.302, 400: 78.943, 600: 79.975, 800: 80.577, 1000: 81.345}
        for number, average in with_true.items():
            assert mean([c for (_, n), c in WITH_TRUE.items() if n == number]) == pytest.approx(
                average, abs=2e-3
            )
        ablation = {"clarinet-ce": 2.987, "clarinet-unconditioned": 73.256, "clarinet-unsharpened": 74.678}
        for method, average in ablation.items():
            assert mean([cell for (_, name), cell in ABLATION.items() if name == method]) == pytest.approx(
                average, abs=2e-3
            )


class TestChart:
    def test_points_lie_where_the_axes_say(self) -> None:
        svg = ET.fromstring(line_chart("a < b", "x", "y", [Series("line & more", [(0, 0), (10, 100)])]))
        space = {"svg": "http://www.w3.org/2000/svg"}
        texts = {node.text: node for node in svg.iterfind(".//svg:text", space)}
        dots = [
            (float(node.get("cx", "")), float(node.get("cy", "")))
            for node in svg.iterfind(".//svg:circle", space)
        ]

        assert {"a < b", "line & more", "100", "10"} <= set(texts)
        assert dots[1][0] == pytest.approx(float(texts["10"].get("x", "")), abs=0.1)
        assert dots[1][1] == pytest.approx(float(texts["100"].get("y", "")) - 4, abs=0.1)

    def test_one_point_is_a_chart_and_none_is_an_error(self) -> None:
        ET.fromstring(line_chart("t", "x", "y", [Series("s", [(3, 5)])]))
        with pytest.raises(ValueError, match="at least one point"):
            line_chart("t", "x", "y", [])
