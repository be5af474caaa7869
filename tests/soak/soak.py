"""A soak: small trainings back to back, each hurt once, for as long as asked; nothing lost, nothing uncharged.

    python tests/soak/soak.py --minutes 120 --seed 1 --log soak.jsonl
    python tests/soak/soak.py --seed 1 --round 17 --log one.jsonl

One JSON line a round, one at the end. Exit status 1 on any violation; the folder of its round is kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[0] = str(HERE.parents[1])  # tests/, where `soak` is this folder and not this file
sys.path.insert(1, str(HERE.parents[2] / "src"))


def main() -> int:
    """Soak, and say how it went."""
    from soak.rounds import Soak

    parser = argparse.ArgumentParser(description="Small trainings back to back, each hurt once.")
    parser.add_argument(
        "--minutes", type=float, default=2.0, help="how long to begin new rounds (default: 2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all choices (default: 0)")
    parser.add_argument("--log", type=Path, required=True, help="a new file: one JSON line a round")
    parser.add_argument("--folder", type=Path, help="where the runs lie (default: a new temporary folder)")
    parser.add_argument("--round", type=int, help="only the round of this number")
    asked = parser.parse_args()
    if asked.log.exists():
        parser.error(f"--log {asked.log}: exists; choose another")
    made = asked.folder is None
    folder = Path(tempfile.mkdtemp(prefix="datalens-soak-")) if made else asked.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(asked.seed, folder, asked.log)
    if asked.round is None:
        soak.rounds_for(asked.minutes)
    else:
        soak.round(asked.round)
    violations = soak.conclude()
    if made and not violations:
        shutil.rmtree(folder)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
