"""Two processes that begin with public weights: the same run as one process, to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.training.directions import read_directions
from datalens.training.run_folder import RunFolder

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys
import torch
from pathlib import Path
from datalens import DataLens
from datalens.data.shapes import draw_shapes
from datalens.distributed.ranks import Ranks
from small_runs import small_config, small_data, stop_after

def main(root):
    torch.set_num_threads(1)
    config = small_config(
        privacy__insecure_seed=7, performance__chunk_size=3, teachers__kind="paper", public_init__steps=4
    )
    source = draw_shapes(40, image_size=8, seed=9)
    with Ranks.join() as ranks:
        stop = stop_after(7) if ranks.is_first else lambda: False
        DataLens(config).fit(small_data(), out=root, public_init=source, stop=stop, ranks=ranks)
        DataLens.resume(root, small_data(), ranks=ranks)

if __name__ == "__main__":
    main(Path(sys.argv[1]))
"""


@pytest.mark.timeout(240)
def test_two_processes_begin_as_one_does(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for world in (1, 2):
        answer = subprocess.run(
            [
                *[sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world)],
                *[str(program), str(tmp_path / str(world))],
            ],
            capture_output=True,
            text=True,
            timeout=200,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
            },
        )
        assert answer.returncode == 0, answer.stderr[-3000:]
        found = verify_run(tmp_path / str(world), replay=True)
        assert found.differences == []
    one, two = (RunFolder.open(tmp_path / str(world)) for world in (1, 2))
    assert one.public_init.read_bytes() == two.public_init.read_bytes()
    pairs = zip(read_directions(one.directions), read_directions(two.directions), strict=True)
    assert all((mine.direction_BD == theirs.direction_BD).all() for mine, theirs in pairs)
    mine, theirs = (DataLens.load(run.root).sample(10, seed=0)[0] for run in (one, two))
    assert (mine == theirs).all()
