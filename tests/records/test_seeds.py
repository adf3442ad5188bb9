"""The files that one run of `explain` writes for several trainings."""

from __future__ import annotations

from eraser_hub.records.predictions import find_seed_files, make_seed_path


def test_a_missing_file_stands_for_the_files_of_its_run(tmp_path):
    out = tmp_path / "p[1].jsonl"
    assert find_seed_files(out) == [out]
    seeds = [make_seed_path(out, seed) for seed in (2, 10, 1)]
    for path in (
        *seeds,
        tmp_path / "p[1].seed-x.jsonl",
        tmp_path / "p1.seed-3.jsonl",
        tmp_path / "p[1].seed-4.jsonl.run.json",
    ):
        path.write_text("")
    assert [path.name for path in find_seed_files(out)] == [f"p[1].seed-{seed}.jsonl" for seed in (1, 2, 10)]
    out.write_text("")
    assert find_seed_files(out) == [out]
