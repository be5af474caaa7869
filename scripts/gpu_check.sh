#!/usr/bin/env bash
# All checks and timings that need a GPU, in one go of at most eight minutes; no internet is needed.
#
#   OUT=results/gpu DATALENS_DATA=.data scripts/gpu_check.sh
#   GPU_CHECK_DEVICE=cpu GPU_CHECK_TINY=1 scripts/gpu_check.sh      # tries the script itself, in a minute
#
# OUT            where results go, one JSON file a part, written as each goes; results/gpu unless given
# DATALENS_DATA  folder with mnist/; .data in the repository unless given
# WHEELS         folder of wheels for packages that the machine lacks; .whl in the repository unless given
# PYTHON         the interpreter; python3 unless given
#
# Exit status: 0 all parts did well, 1 some did not (summary.txt says which), 2 there is no CUDA here.
set -uo pipefail
cd "$(dirname "$0")/.."

OUT=${OUT:-results/gpu}
PYTHON=${PYTHON:-python3}
WHEELS=${WHEELS:-.whl}
DEVICE=${GPU_CHECK_DEVICE:-cuda}
LIMIT=${GPU_CHECK_SECONDS:-480}
export DATALENS_DATA=${DATALENS_DATA:-$PWD/.data}
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
STARTED=$SECONDS

if [ "$DEVICE" = cuda ] &&
    ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "no CUDA: $PYTHON has no PyTorch that sees a GPU here, so nothing was checked" >&2
    exit 2
fi

mkdir -p "$OUT"
extra=
if ls "$WHEELS"/*.whl >/dev/null 2>&1; then
    extra=$(mktemp -d)
    trap 'rm -rf "$extra"' EXIT
    "$PYTHON" -m pip install --quiet --no-index --no-deps --target "$extra" "$WHEELS"/*.whl >"$OUT/wheels.log" 2>&1
    export PYTHONPATH="$PYTHONPATH:$extra"
fi
if ! "$PYTHON" -c 'import datalens.training.session' 2>"$OUT/import.log"; then
    echo "datalens cannot be imported ($(tail -1 "$OUT/import.log")): put wheels of what is missing into $WHEELS" >&2
    exit 1
fi

SUMMARY=$OUT/summary.txt
FAILED=0
echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $(git rev-parse --short HEAD 2>/dev/null) device $DEVICE" >"$SUMMARY"
nvidia-smi --query-gpu=name,memory.total,memory.free,driver_version --format=csv >>"$SUMMARY" 2>/dev/null

# part NAME SECONDS COMMAND...: what it prints goes to NAME.json, its errors to NAME.log, its end to the summary
part() {
    local name=$1 most=$2 began=$SECONDS left rc
    shift 2
    left=$((LIMIT - (SECONDS - STARTED) - 5))
    [ "$most" -le "$left" ] || most=$left
    if [ "$most" -lt 5 ]; then
        rc="left out: no time"
    else
        timeout -k 3 "$most" "$PYTHON" "$@" >"$OUT/$name.stdout" 2>"$OUT/$name.log"
        rc=$?
        # a part that was killed may have left what it knew in NAME.json
        if [ -s "$OUT/$name.stdout" ]; then mv "$OUT/$name.stdout" "$OUT/$name.json"; else rm -f "$OUT/$name.stdout"; fi
        [ -s "$OUT/$name.log" ] || rm -f "$OUT/$name.log"
    fi
    [ "$rc" = 0 ] || FAILED=1
    echo "$name: exit $rc after $((SECONDS - began)) s" | tee -a "$SUMMARY"
}

if [ -n "${GPU_CHECK_TINY:-}" ]; then
    part syncs 60 scripts/gpu_syncs.py --device "$DEVICE" --source shapes --recipe shapes-quick --teachers 20 --steps 1
    part votes 60 scripts/gpu_votes.py --device "$DEVICE" --source shapes --teachers 4 --chunk 4 --steps-before 1
    part mnist-paper 60 scripts/gpu_training.py shapes --recipe mnist-paper --teachers 4 --steps 2 --samples 20 \
        --device "$DEVICE" --out "$OUT/mnist-paper.json"
    part mnist-quick 60 scripts/gpu_training.py shapes --recipe mnist-quick --teachers 20 --steps 2 --samples 20 \
        --device "$DEVICE" --out "$OUT/mnist-quick.json"
    part peak 60 benchmarks/peak_share.py --device "$DEVICE" --teachers 2 --images 3 --size 128 --repeats 2
    part teachers 60 benchmarks/teachers.py shapes --recipe shapes-quick --device "$DEVICE" --counts 4 8 --reference 4 --rounds 1
else
    part syncs 40 scripts/gpu_syncs.py --device "$DEVICE" --recipe mnist-paper --teachers 400
    part syncs-quick 30 scripts/gpu_syncs.py --device "$DEVICE" --recipe mnist-quick --teachers 400
    part votes 60 scripts/gpu_votes.py --device "$DEVICE"
    # the whole training at epsilon 1; the aim is 60 s on an H100. Its own limit leaves time for sampling and a score
    part mnist-paper 220 scripts/gpu_training.py mnist --recipe mnist-paper --device "$DEVICE" --accuracy \
        --most-seconds 150 --out "$OUT/mnist-paper.json"
    part mnist-quick 60 scripts/gpu_training.py mnist --recipe mnist-quick --device "$DEVICE" --accuracy \
        --most-seconds 40 --out "$OUT/mnist-quick.json"
    part peak 40 benchmarks/peak_share.py --device "$DEVICE" --teachers 200 --size 8192 --repeats 10
    part teachers 60 benchmarks/teachers.py mnist --device "$DEVICE" --counts 200 1000 4000 --rounds 3
fi

echo "whole: $((SECONDS - STARTED)) s, results in $OUT" | tee -a "$SUMMARY"
exit $FAILED
