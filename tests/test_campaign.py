"""Campaigns: the same store whatever happens on the way and however many devices and processes work at it."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas
import pytest

import mbsjax as mbs
from tests.tolerances import clutch_study


ROOT = pathlib.Path(__file__).parent.parent


def start(store, samples, chunk, *cluster, devices=1):
    """The clutch's campaign in a process of its own, with all passes of XLA, as users have them: without some, and
    without optimization, a program for one device differs from that for several in its last bits."""
    flags = [x for x in os.environ.get("XLA_FLAGS", "").split() if not x.startswith("--xla_disable_hlo_passes")]
    flags = " ".join([*flags, f"--xla_force_host_platform_device_count={devices}"])
    given = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.campaign_script", str(store), str(samples), str(chunk), *map(str, cluster)]
    return subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*processes):
    told = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        told.append(out.splitlines()[-1].split(maxsplit=1))
    return told


def content(store):
    return {path.name: path.read_bytes() for path in pathlib.Path(store).iterdir()}


@pytest.mark.long
def test_same_samples_on_one_two_and_eight_devices_and_in_two_processes(tmp_path):
    told = [finish(start(tmp_path / str(n), 4000, 512, devices=n))[0] for n in (1, 2, 8)]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    told += finish(*(start(tmp_path / "two", 4000, 512, address, 2, k) for k in (0, 1)))
    assert [int(devices) for devices, _ in told] == [1, 2, 8, 2, 2]
    assert len({numbers for _, numbers in told}) == 1
    one = content(tmp_path / "1")
    assert len(one) == 9
    for other in ("2", "8", "two"):
        assert content(tmp_path / other) == one


@pytest.mark.long
def test_killed_three_times_it_ends_as_if_nothing_had_happened(tmp_path):
    samples, chunk = 400 * 64, 64
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    (undisturbed,) = finish(start(calm, samples, chunk))
    chance = random.Random(1)
    written = 0
    for _ in range(3):
        process = start(rough, samples, chunk)
        goal = written + chance.randrange(1, 80)
        while (written := len(list(rough.glob("*.parquet")))) < goal and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        written = len(list(rough.glob("*.parquet")))
        assert 0 < written < 400
    (resumed,) = finish(start(rough, samples, chunk))
    assert resumed == undisturbed
    drafts = [name for name in content(rough) if name.startswith(".")]
    assert len(drafts) <= 3
    assert {k: v for k, v in content(rough).items() if k not in drafts} == content(calm)


@pytest.fixture(scope="module")
def clutch():
    return clutch_study()


def test_a_campaign_is_the_sample_of_its_seed(clutch, tmp_path):
    sample = mbs.monte_carlo(clutch, 2500, seed=4, chunk=1024)
    done = mbs.campaign(clutch, 2500, tmp_path, seed=4, chunk=1024, progress=False)
    np.testing.assert_array_equal(done.sample().values, sample.values)
    np.testing.assert_array_equal(done.tally.errors, sample.tally.errors)
    x = sample.dimensions(np.arange(2500))
    phi = np.arccos((x[:, 0] + x[:, 1]) / (x[:, 2] - x[:, 1]))
    np.testing.assert_allclose(sample["phi"], phi, rtol=1e-10)
    frame = pandas.read_parquet(tmp_path / "00000001.parquet")
    np.testing.assert_array_equal(frame["phi"], sample["phi"][1024:2048])

    more = mbs.campaign(clutch, 4000, tmp_path, seed=4, chunk=1024, progress=False)  # it may grow
    np.testing.assert_array_equal(more.sample().values[:2500], sample.values)
    assert more.tally.n == 4000
    fewer = mbs.campaign(clutch, 1500, tmp_path, seed=4, chunk=1024, progress=False)  # and be looked at in part
    assert fewer.tally.n == 1500 and len(fewer.sample().kind) == 1500 and len(more.sample().kind) == 4000
    np.testing.assert_array_equal(more.sample().values, mbs.monte_carlo(clutch, 4000, seed=4, chunk=1024).values)


def test_damaged_chunks_are_found_and_run_again(clutch, tmp_path):
    before = mbs.campaign(clutch, 5 * 1024, tmp_path, chunk=1024, progress=False)
    known = content(tmp_path)
    cut, changed, swapped = (tmp_path / f"{k:08d}.parquet" for k in (1, 2, 3))
    cut.write_bytes(known[cut.name][:1000])
    bits = bytearray(known[changed.name])
    bits[2000] ^= 1
    changed.write_bytes(bits)
    swapped.write_bytes(known["00000004.parquet"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        after = mbs.campaign(clutch, 5 * 1024, tmp_path, chunk=1024, progress=False)
    named = [str(w.message) for w in told if w.category is mbs.StoreWarning]
    assert [any(f"chunk {k} of" in text for text in named) for k in range(5)] == [False, True, True, True, False]
    assert content(tmp_path) == known
    np.testing.assert_array_equal(after.tally.mean, before.tally.mean)


def test_stores_of_others_are_refused(clutch, tmp_path, capsys):
    mbs.campaign(clutch, 1024, tmp_path / "mine", chunk=1024, progress=True)
    assert "samples/s" in capsys.readouterr().err
    for other, what in (
        ({"seed": 1}, "seed"),
        ({"chunk": 512}, "chunk"),
        ({"method": "latin"}, "method, other samples"),
    ):
        with pytest.raises(ValueError, match=f"mine belongs to another study: it has other {what}"):
            mbs.campaign(clutch, 1024, tmp_path / "mine", **{"chunk": 1024, "progress": False, **other})
    line = lambda slope: mbs.Study(lambda p: p, {"a": 1.0}, {"a": 0.1}, {"y": lambda p: slope * p["a"]})
    mbs.campaign(line(1.0), 10, tmp_path / "line", chunk=10, progress=False)
    with pytest.raises(ValueError, match="values at nominal"):
        mbs.campaign(line(2.0), 10, tmp_path / "line", chunk=10, progress=False)
    clash = mbs.Study(lambda p: p, {"a": 1.0}, {"a": 0.1}, {"index": lambda p: p["a"]})
    with pytest.raises(ValueError, match="cannot be called 'index'"):
        mbs.campaign(clash, 10, tmp_path / "clash", progress=False)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear ...")
    with pytest.raises(ValueError, match="letters is not empty, and not the store of a campaign"):
        mbs.campaign(line(1.0), 10, tmp_path / "letters", chunk=10, progress=False)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "Dear ..."
