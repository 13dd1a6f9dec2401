"""A comparison with a row of joint training has intransigence, of each seed beside joint training with that seed."""

import pandas as pd
import pytest

from tests.epsearch.conftest import TINY

OPTIONS = [part for name, value in TINY.items() for part in ("--" + name.replace("_", "-"), str(value))]


@pytest.mark.slow
def test_intransigence_is_that_of_each_seed(epsearch, tmp_path):
    run = ["compare", *OPTIONS, "--seeds", "2"]
    assert epsearch(*run, "--methods", "van,agem,joint,iid", "--name", "both").status == 0
    runs = pd.read_csv(tmp_path / "runs" / "both" / "runs.csv").set_index(["method", "seed"])
    for method in ("van", "agem", "joint", "iid"):
        for seed in (0, 1):
            expected = (runs.loc[("joint", seed), "a_t"] - runs.loc[(method, seed), "a_t"]) / 100
            assert runs.loc[(method, seed), "I_T"] == pytest.approx(expected, abs=1e-6)
    assert runs["I_T"].abs().max() > 0 and runs.loc["joint", "F_T"].isna().all()
    assert epsearch(*run, "--methods", "van,agem", "--name", "without").status == 0
    assert "I_T" not in pd.read_csv(tmp_path / "runs" / "without" / "runs.csv").columns


@pytest.mark.slow
def test_reference_rows_have_the_settings_of_plain_sgd(epsearch, tmp_path):
    assert epsearch("compare", *OPTIONS, "--methods", "van,joint,iid", "--name", "rows").status == 0
    table = pd.read_csv(tmp_path / "runs" / "rows" / "comparison.csv")
    assert len(table) == 3 and table["settings"].nunique() == 1
