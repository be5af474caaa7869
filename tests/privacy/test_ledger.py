from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.errors import LedgerError, RunError
from datalens.privacy import ledger as ledger_module
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, NoiseKind, PoissonGaussianEvent, SamplerSlack
from datalens.privacy.ledger import Ledger, canonical_json, costliest
from datalens.privacy.ledger_format import FORMAT, GENESIS, make_line

SMALL = GaussianEvent(2.0, 100.0, coordinates=64, slack=SamplerSlack(2.0**-100, 2.0**-90))
LARGE = GaussianEvent(4.0, 50.0, coordinates=64)


@pytest.fixture
def no_sync(monkeypatch):
    """Loops over thousands of small files need no flush to disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def make(path):
    with Ledger.create(path, {"dataset": "shapes", "epsilon": 0.1}) as ledger:
        ledger.charge(SMALL, {"step": 1})
        ledger.charge(SMALL, {"step": 2})
        ledger.append("note", {"text": "done, ein Schluß"})
        ledger.charge(LARGE, {"step": 3})
    return path


def test_lines_survive_a_round_trip(tmp_path):
    path = make(tmp_path / "ledger.jsonl")
    again = Ledger.read(path)
    assert [line.kind for line in again.lines] == [
        "header",
        "planned",
        "release",
        "release",
        "note",
        "planned",
        "release",
    ]
    assert again.events() == (SMALL, SMALL, LARGE)
    assert again.header["dataset"] == "shapes"
    assert b"".join(line.encode() for line in again.lines) == path.read_bytes()
    with Ledger.open(path) as opened:
        assert opened.lines == again.lines
        assert opened.head == again.head == (6, again.lines[-1].hash)


def test_events_and_notes_are_exact(tmp_path):
    event = GaussianEvent(
        2 * math.sqrt(0.1), 1 / 3, 7, NoiseKind.DISCRETE, SamplerSlack(1e-300, 5e-324), count=3
    )
    sampled = PoissonGaussianEvent(0.1 + 0.2, 1.1, 5)
    with Ledger.create(tmp_path / "a", {}) as ledger:
        ledger.charge(event)
        ledger.charge(sampled)
    assert Ledger.read(tmp_path / "a").events() == (event, sampled)


def test_the_same_content_in_memory_and_on_disk_has_the_same_head(tmp_path):
    memory = Ledger.in_memory({"a": 1})
    memory.charge(SMALL)
    with Ledger.create(tmp_path / "a", {"a": 1}) as disk:
        disk.charge(SMALL)
        assert disk.head == memory.head


def test_a_line_is_on_disk_and_synced_before_the_call_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd))[1])
    with Ledger.create(tmp_path / "a", {}) as ledger:
        assert len(synced) == 2  # the file, then its folder
        ledger.append("note", {"text": "x"})
        assert synced[-1] == (tmp_path / "a").stat().st_size
        assert len(Ledger.read(tmp_path / "a").lines) == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, object(), b"bytes"])
def test_only_plain_finite_values(value):
    ledger = Ledger.in_memory({})
    with pytest.raises(LedgerError, match="cannot hold"):
        ledger.append("note", {"value": value})
    assert len(ledger.lines) == 1


def test_canonical_floats_read_back_exactly():
    for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 1e22, 2.0):
        assert json.loads(canonical_json(value)) == value


def test_own_kinds_and_broken_events_are_refused():
    ledger = Ledger.in_memory({})
    for kind in ("header", "planned", "recovered", "two words"):
        with pytest.raises(LedgerError, match="kind"):
            ledger.append(kind, {})
    with pytest.raises(LedgerError, match="event"):
        ledger.append("release", {"note": {}})
    with pytest.raises(LedgerError, match="event"):
        ledger.append("release", {"event": {**SMALL.to_json(), "noise_stddev": -1.0}})
    assert len(ledger.lines) == 1


# -- cut-off ends --------------------------------------------------------------------------------------------


def test_every_cut_is_recognised_and_charged(tmp_path, no_sync):
    content = make(tmp_path / "whole").read_bytes()
    ends = [index + 1 for index, byte in enumerate(content) if byte == 10]
    kinds = [line.kind for line in Ledger.read(tmp_path / "whole").lines]
    path = tmp_path / "cut"
    for size in range(len(content)):
        path.write_bytes(content[:size])
        whole = sum(end <= size for end in ends)
        if whole == 0:
            with pytest.raises(LedgerError, match="line 1"):
                Ledger.open(path)
            continue
        is_cut = size not in ends
        released = kinds[:whole].count("release")
        planned = "planned" in kinds[:whole]
        readable = Ledger.read(path)
        assert readable.was_cut_off == is_cut
        assert len(readable.events()) == released + (is_cut and planned)
        if size % 13 and min(abs(size - end) for end in ends) > 2:
            continue  # writing is tried around every end of a line and here and there between
        with Ledger.open(path) as opened:
            events = opened.events()
            assert readable.events() == events
            if is_cut and kinds[whole] == "release":  # the cut release is charged at least its own cost
                assert events[-1].mu >= (SMALL, LARGE)[kinds[:whole].count("planned") - 1].mu
            if is_cut:
                assert opened.lines[-1].kind == "recovered"
            opened.append("note", {"text": "goes on"})
        assert path.read_bytes().startswith(content[:size])  # what was cut off stays as evidence
        again = Ledger.read(path)
        assert not again.was_cut_off
        assert again.events() == events
        assert again.lines[-1].kind == "note"


def test_a_crash_while_recovering_is_recovered_too(tmp_path, no_sync):
    content = make(tmp_path / "whole").read_bytes()
    cut = content[:-20]
    path = tmp_path / "cut"
    path.write_bytes(cut)
    Ledger.open(path).close()
    recovered = path.read_bytes()
    near = range(len(cut), len(cut) + 14)
    for size in sorted({*near, *range(len(cut), len(recovered), 9), len(recovered) - 1}):
        path.write_bytes(recovered[:size])
        with Ledger.open(path) as opened:
            assert opened.events()[:-1] == (SMALL, SMALL)
            assert opened.events()[-1].mu == LARGE.mu
        assert Ledger.read(path).lines[-1].kind == "recovered"
        twice = path.read_bytes()
        path.write_bytes(twice[:-1])
        with Ledger.open(path) as opened:
            assert opened.events()[-1].mu == LARGE.mu


def test_a_write_that_fails_takes_its_partial_line_back(tmp_path, monkeypatch):
    path = make(tmp_path / "a")
    before = path.read_bytes()
    ledger = Ledger.open(path)
    real = os.write

    def full(descriptor, data):
        if len(data) > 30:
            return real(descriptor, data[:30])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(
        ledger_module.os, "write", lambda fd, data: full(fd, data[:40]) if fd > 2 else real(fd, data)
    )
    with pytest.raises(LedgerError, match="nothing was released"):
        ledger.charge(SMALL)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert ledger.events() == (SMALL, SMALL, LARGE)
    with pytest.raises(LedgerError, match="earlier write failed"):
        ledger.charge(SMALL)
    ledger.close()
    with Ledger.open(path) as opened:
        opened.charge(SMALL)
        assert len(opened.events()) == 4


def test_a_failing_flush_is_an_error_and_no_release(tmp_path, monkeypatch):
    ledger = Ledger.open(make(tmp_path / "a"))

    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(ledger_module.os, "fsync", fail)
    with pytest.raises(LedgerError, match="nothing was released"):
        ledger.charge(SMALL)
    assert len(ledger.events()) == 3


# -- damage --------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(tmp_path):
    with Ledger.create(tmp_path / "whole", {}) as ledger:
        ledger.charge(LARGE)
    content = (tmp_path / "whole").read_bytes()
    last = content[:-1].rfind(b"\n") + 1
    path = tmp_path / "flipped"
    for position in range(len(content)):
        for bit in (position % 8,) if position < last else (0, 5):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            if position == len(content) - 1:  # the last newline is gone: the same as a cut
                assert Ledger.read(path).was_cut_off
                assert Ledger.read(path).events() == (LARGE,)
                continue
            with pytest.raises(LedgerError, match=r"line \d"):
                Ledger.read(path)


def test_damage_names_its_line_and_reason(tmp_path):
    path = make(tmp_path / "a")
    lines = path.read_text().splitlines(keepends=True)
    for damaged, message in (
        (lines[:2] + lines[3:], "line 3 .*index 3 where 2 belongs"),
        ([*lines[:3], "not json\n", *lines[4:]], "line 4 .*not a ledger line"),
        ([*lines[:2], lines[2].replace('"step":1', '"step":9'), *lines[3:]], "line 3 .*hash"),
        ([*lines[:2], lines[2].replace('"step":1', '"step": 1'), *lines[3:]], "line 3 .*hash"),
        ([*lines, "\n"], "line 8 .*not a ledger line"),
        ([*lines, lines[0]], "line 8 .*index 0"),
        (["[1]\n"], "line 1"),
        ([], "line 1"),
        (["[" * 100_000 + "\n"], "line 1"),
        ([*lines[:3], lines[3][:30] + " #cut-off\n", *lines[3:]], "stand together"),
        ([*lines[:3], lines[3].rstrip("\n") + lines[4].rstrip("\n")], None),
    ):
        path.write_text("".join(damaged))
        if message is None:
            continue
        with pytest.raises(LedgerError, match=message):
            Ledger.open(path)


def test_two_lines_run_together_at_the_end_are_damage_and_not_a_cut(tmp_path):
    path = make(tmp_path / "a")
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(lines[:2]) + b"\n" + lines[2] + b" " + lines[3])
    with pytest.raises(LedgerError, match="two lines in one"):
        Ledger.open(path)


def test_known_heads_are_compared(tmp_path):
    path = make(tmp_path / "a")
    ledger = Ledger.read(path)
    ledger.check_heads([ledger.head, (2, ledger.lines[2].hash)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    older = Ledger.read(path)
    with pytest.raises(LedgerError, match="ends at line 3 but line 6 was seen before"):
        older.check_heads([ledger.head])
    other = Ledger.in_memory({"dataset": "another"})
    with pytest.raises(LedgerError, match="another line 0"):
        other.check_heads([(0, ledger.lines[0].hash)])


# -- one writer ----------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_a_crash_leaves_no_lock(tmp_path):
    path = make(tmp_path / "a")
    code = (
        "import sys, os\nfrom datalens.privacy.ledger import Ledger\nledger = Ledger.open(sys.argv[1])\n"
        "print('held', flush=True)\nsys.stdin.read()\nos._exit(9)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match="in use"):
            Ledger.open(path)
        assert Ledger.read(path).events()  # reading is always possible
        holder.kill()
    Ledger.open(path).close()


def test_two_writers_in_one_process_are_refused(tmp_path):
    with Ledger.create(tmp_path / "a", {}):
        with pytest.raises(RunError, match="in use"):
            Ledger.open(tmp_path / "a")
        with pytest.raises(RunError, match="exists"):
            Ledger.create(tmp_path / "a", {})
    assert os.listdir(tmp_path) == ["a"]


def test_closed_missing_and_read_only_ledgers_refuse_lines(tmp_path):
    ledger = Ledger.create(tmp_path / "a", {})
    ledger.close()
    for refused in (ledger, Ledger.read(tmp_path / "a")):
        with pytest.raises(LedgerError, match="takes no line"):
            refused.append("note", {})
    for call in (Ledger.open, Ledger.read):
        with pytest.raises(RunError):
            call(tmp_path / "missing")
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "no" / "folder", {})


def test_a_ledger_that_could_not_be_made_leaves_nothing_open_or_behind(tmp_path, monkeypatch):
    opened, closed = [], []
    really_open, really_close = os.open, os.close
    monkeypatch.setattr(
        os, "open", lambda *how, **more: opened.append(really_open(*how, **more)) or opened[-1]
    )
    monkeypatch.setattr(os, "close", lambda one: closed.append(one) or really_close(one))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datalens.privacy.ledger.publish", full)
    with pytest.raises(LedgerError, match="No space left on device"):
        Ledger.create(tmp_path / "ledger.jsonl", {})
    assert opened and sorted(opened) == sorted(closed)
    assert list(tmp_path.iterdir()) == []


def test_kill_in_the_middle_of_charging_never_loses_a_release(tmp_path):
    code = (
        "import sys\nfrom datalens.privacy.ledger import Ledger\nfrom datalens.privacy.events import "
        "GaussianEvent\n"
        "ledger = Ledger.open(sys.argv[1])\nstep = 0\nwhile True:\n"
        "    ledger.charge(GaussianEvent(2.0, 100.0, 64), {'step': step})\n    step += 1\n    "
        "print(step, flush=True)\n"
    )
    path = tmp_path / "a"
    Ledger.create(path, {}).close()
    total = 0
    for wanted in (1, 4, 9):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            for _ in range(wanted):
                worker.stdout.readline()
            worker.kill()
            used = wanted + len(worker.stdout.readlines())
        with Ledger.open(path) as ledger:
            assert len(ledger.events()) >= total + used
            total = len(ledger.events())


def test_the_costliest_bounds_every_event_it_stands_for():
    worst = costliest([SMALL, LARGE, PoissonGaussianEvent(0.1, 2.0, 3), PoissonGaussianEvent(0.2, 4.0)])
    assert worst == (
        GaussianEvent(4.0, 50.0, 64, slack=SMALL.slack),
        PoissonGaussianEvent(0.2, 2.0, 3),
    )
    assert costliest([]) == ()


def test_a_step_and_a_score_do_not_make_a_phantom_that_costs_more_than_both(tmp_path):
    step = GaussianEvent(40.0, 2400.0, 64 * 784, slack=SamplerSlack(2.0**-100, 2.0**-100))
    score = GaussianEvent(1.0, 70.0, 1, slack=SamplerSlack(2.0**-90, 2.0**-90))
    dearer = max(Accountant().epsilon(event, 1e-5) for event in (step, score))
    path = tmp_path / "a"
    with Ledger.create(path, {}) as ledger:
        ledger.charge(step, {"step": 1})
        ledger.charge(score, {"score": 1})
    path.write_bytes(path.read_bytes()[:-9])
    with Ledger.open(path) as ledger:
        *_, stand_in = ledger.events()
        assert stand_in == costliest([step, score])[0]
        assert dearer <= Accountant().epsilon(stand_in, 1e-5) <= dearer * 1.001


EVENTS = st.builds(
    GaussianEvent,
    sensitivity=st.floats(0.5, 50),
    noise_stddev=st.floats(20, 3000),
    coordinates=st.integers(1, 10**5),
    noise=st.sampled_from([NoiseKind.ROUNDED, NoiseKind.DISCRETE, NoiseKind.CONTINUOUS]),
    slack=st.builds(SamplerSlack, eta=st.floats(0, 1e-8), tau=st.floats(0, 1e-14)),
    count=st.integers(1, 40),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=6))
def test_no_known_event_costs_more_than_what_stands_for_its_family(events):
    worst = costliest(events)
    assert costliest([*worst, *events]) == costliest(events[::-1]) == worst
    for kind in AccountantKind:
        price = Accountant(kind).epsilon
        for event in events:
            [mine] = [found for found in worst if found.noise is event.noise]
            for delta in (1e-9, 1e-5, 1e-2):
                assert price(event, delta) <= price(mine, delta) * (1 + 1e-9)
    for found in worst:  # and nothing but slack and coordinates is invented
        family = [event for event in events if event.noise is found.noise]
        assert (found.mu, found.count) in [(event.mu, event.count) for event in family]


def test_an_event_of_many_small_releases_is_covered_with_its_draws():
    many = GaussianEvent(1.0, 100.0, 10, slack=SamplerSlack(1e-6, 0.0), count=1000)
    once = GaussianEvent(100.0, 10.0, 3)
    [worst] = costliest([many, once])
    assert (worst.mu, worst.count, worst.coordinates) == (10.0, 1, 10_000)


def _lines_of(*bodies):
    """Lines that follow one another, with right indices and hashes, whatever they say."""
    lines = []
    for kind, body in bodies:
        lines.append(make_line(len(lines), kind, body, lines[-1].hash if lines else GENESIS))
    return lines


@pytest.mark.parametrize(
    "bodies",
    [
        [("header", {"format": FORMAT}), ("header", {"format": FORMAT})],
        [("note", {"format": FORMAT})],
        [("header", {"format": "another"})],
        [("header", {})],
    ],
)
def test_a_header_of_this_format_belongs_in_line_1_and_nowhere_else(tmp_path, bodies):
    path = tmp_path / "a"
    path.write_bytes(b"".join(line.encode() for line in _lines_of(*bodies)))
    with pytest.raises(
        LedgerError, match=rf"line {len(bodies)} \(a header of format {FORMAT} belongs in line 1"
    ):
        Ledger.read(path)


def test_the_bytes_of_a_cut_off_line_are_vouched_for(tmp_path):
    path = make(tmp_path / "a")
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    Ledger.open(path).close()
    repaired = path.read_bytes()
    assert [line.kind for line in Ledger.read(path).lines][-1] == "recovered"
    place = len(content) - 40
    path.write_bytes(repaired[:place] + b"?" + repaired[place + 1 :])
    with pytest.raises(LedgerError, match="the cut-off line before it has changed"):
        Ledger.read(path)
