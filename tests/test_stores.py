"""Where campaigns are kept: folders and fsspec's file systems, readers of other people, full disks, claims."""

import errno
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import duckdb
import fsspec
import jax.numpy as jnp
import numpy as np
import pandas
import polars
import pyarrow.dataset
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import mbsjax as mbs
from mbsjax._tolerance import claims
from mbsjax._tolerance.claims import Claims
from mbsjax._tolerance.store import Store


CHUNK, COUNT = 64, 8
N = CHUNK * (COUNT - 1) + 10


class Narrow(MemoryFileSystem):
    """A file system that takes a while to write, and has no more room after some chunks."""

    protocol = "narrow"
    store: dict = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    room = 10**9
    pause = 0.0

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if path.endswith(".parquet"):
            time.sleep(self.pause)
            if sum(name.endswith(".parquet") for name in self.store) >= self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pipe_file(path, value, mode, **kwargs)


fsspec.register_implementation("narrow", Narrow, clobber=True)


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(Narrow, "store", {})
    monkeypatch.setattr(Narrow, "pseudo_dirs", [""])
    return monkeypatch


@pytest.fixture(scope="module")
def study():
    return mbs.Study(
        lambda p: p,
        {"a": 2.0, "b": 1.0},
        {"a": 0.3, "b": mbs.Uniform(0.5)},
        {"square": lambda p: p["a"] ** 2, "sum": lambda p: p["a"] + p["b"]},
        limits={"square": (None, 4.2), "sum": (2.6, None)},
    )


def run(study, store=None, n=N, **given):
    return mbs.campaign(study, n, store, **{"chunk": CHUNK, "progress": False, **given})


@pytest.fixture(scope="module")
def calm(study, tmp_path_factory):
    """An undisturbed campaign."""
    return run(study, tmp_path_factory.mktemp("calm") / "store")


def chunks(store):
    """The chunks of a store, byte for byte."""
    store = Store(store)
    return {name: store.get(name) for name in store.names() if name.endswith(".parquet")}


def same(done, calm):
    assert chunks(done.path) == chunks(calm.path)
    for name in ("mean", "std", "errors", "bins", "least", "classes"):
        np.testing.assert_array_equal(getattr(done.tally, name), getattr(calm.tally, name))


def test_readers_of_parquet_take_the_folder_as_it_is(study, calm):
    folder = str(calm.path)
    values = mbs.monte_carlo(study, N, chunk=CHUNK).values
    with Claims(Store(folder)):  # while somebody works at it
        assert (calm.path / "_claims").is_dir()
        arrow = pyarrow.dataset.dataset(folder).to_table().to_pandas()
        frames = [
            pandas.read_parquet(folder),
            arrow,
            polars.scan_parquet(f"{folder}/*.parquet").collect().to_pandas(),
            duckdb.sql(f"select * from '{folder}/*.parquet'").df(),
        ]
    for frame in frames:
        frame = frame.sort_values("index")
        assert list(frame["index"]) == list(range(N))
        np.testing.assert_array_equal(frame[["square", "sum"]].to_numpy(), values)
    assert sorted(p.name for p in calm.path.iterdir() if p.suffix != ".parquet") == ["_manifest.json"]


def test_stores_in_memory_are_those_of_folders(study, calm):
    url = "memory://campaigns/one"
    same(run(study, url, 3 * CHUNK + 5), run(study, url, 3 * CHUNK + 5))
    grown = run(study, url)
    same(grown, calm)
    assert grown.path == url
    np.testing.assert_array_equal(grown.sample().values, calm.sample().values)
    files = fsspec.filesystem("memory")
    files.pipe_file("/campaigns/one/00000002.parquet", files.cat_file("/campaigns/one/00000002.parquet")[:700])
    with pytest.warns(mbs.StoreWarning, match="chunk 2 of memory://campaigns/one is damaged"):
        same(run(study, url), calm)
    with pytest.raises(ValueError, match="belongs to another study: it has other seed"):
        run(study, url, seed=1)


def test_without_a_store_statistics_are_kept(study, calm):
    done = run(study)
    for name in ("mean", "std", "errors", "bins", "least", "classes"):
        np.testing.assert_array_equal(getattr(done.tally, name), getattr(calm.tally, name))
    assert done.path is None and repr(done).startswith("Campaign('no store', chunk=64")
    with pytest.raises(ValueError, match="statistics only"):
        done.sample()


def test_a_finished_store_is_only_read(study, calm, monkeypatch):
    def refused(*_):
        raise OSError("read-only")

    monkeypatch.setattr(Store, "put", refused)
    same(run(study, calm.path), calm)
    same(run(study, calm.path, until={"yield": 1e-6}), calm)


def test_a_store_of_the_earlier_version_is_taken_over(study, calm, tmp_path):
    for name, content in chunks(calm.path).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "study.json").write_bytes((calm.path / "_manifest.json").read_bytes())
    written = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.parquet")}
    same(run(study, tmp_path), calm)
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.parquet")} == written
    assert len(pandas.read_parquet(tmp_path)) == N
    with pytest.raises(ValueError, match="it has other seed"):
        run(study, tmp_path, seed=1)


def clipped(text):
    """A study whose measure is written down in a text; `top` is a number that it refers to."""
    scope = {"jnp": jnp, "top": 9.0}
    exec(text, scope)
    return mbs.Study(lambda p: 2 * p["a"], {"a": 2.0}, {"a": 0.06}, {"travel": scope["travel"]}), scope


TRAVEL = "def travel(x):\n    most = top\n    return jnp.minimum(x, most)"


@pytest.fixture(scope="module")
def travels(tmp_path_factory):
    """A store of a measure that is clipped nowhere."""
    done = run(clipped(TRAVEL)[0], tmp_path_factory.mktemp("travels") / "store", 2 * CHUNK)
    assert 4.05 < done.sample().values.max() < 8.0
    return done


def copied(done, folder, change=lambda manifest: manifest):
    shutil.copytree(done.path, folder)
    manifest = folder / "_manifest.json"
    manifest.write_text(json.dumps(change(json.loads(manifest.read_text()))))
    return folder


@pytest.mark.parametrize("top", [4.05, 8.0])  # where it cuts off some samples, and where it never matters so far
def test_a_model_that_was_changed_is_refused(travels, top):
    text = TRAVEL.replace("most = top", f"most = {top}")
    with pytest.raises(
        ValueError, match=r"another study: it has another measure 'travel' \(its code, top\)\. Take ano"
    ):
        run(clipped(text)[0], travels.path, 2 * CHUNK)
    scope = clipped(TRAVEL)[1]
    scope["top"] = top
    changed = mbs.Study(lambda p: 2 * p["a"], {"a": 2.0}, {"a": 0.06}, {"travel": scope["travel"]})
    with pytest.raises(
        ValueError, match=rf"'travel' \(top = 9.0, now {top}\).*remove \"functions\" from _manifest.json"
    ):
        run(changed, travels.path, 2 * CHUNK)
    modeled = mbs.Study(lambda p: p["a"] + p["a"], {"a": 2.0}, {"a": 0.06}, {"travel": clipped(TRAVEL)[1]["travel"]})
    with pytest.raises(ValueError, match=r"it has another model \(its code\)\."):
        run(modeled, travels.path, 2 * CHUNK)


def test_harmless_changes_are_accepted(travels):
    for text in (
        TRAVEL.replace("    most", "    # a comment\n\n    most"),
        TRAVEL.replace("most", "largest"),
        TRAVEL.replace("(x)", "(stroke)").replace("(x,", "(stroke,"),
        TRAVEL.replace("(x):", '(x):\n    "Documented."'),
    ):
        same(run(clipped(text)[0], travels.path, 2 * CHUNK), travels)


@pytest.mark.parametrize("without", ["functions", "this version"])
def test_where_keys_cannot_be_compared_samples_are(travels, tmp_path, without):
    def change(manifest):
        (keys,) = manifest.pop("functions").values()
        return manifest if without == "functions" else {**manifest, "functions": {"Python 2.7": keys}}

    cut = clipped(TRAVEL.replace("top", "4.05"))[0]
    with pytest.raises(ValueError, match=r"other values: sample \d+ has travel = 4\.0\d+, now 4\.05"):
        run(cut, copied(travels, tmp_path / "cut", change), 2 * CHUNK)
    taken = copied(travels, tmp_path / "same", change)
    same(run(clipped(TRAVEL)[0], taken, 2 * CHUNK), travels)
    manifest = json.loads((taken / "_manifest.json").read_text())
    assert len(manifest["functions"]) == 1 + (without != "functions")
    with pytest.raises(ValueError, match="another measure 'travel'"):  # from now on, keys tell
        run(clipped(TRAVEL.replace("top", "8.0"))[0], taken, 2 * CHUNK)


def test_of_functions_that_cannot_be_seen_samples_are_compared(tmp_path):
    hidden = (k for k in ())
    study = lambda top: mbs.Study(
        lambda p: 2 * p["a"], {"a": 2.0}, {"a": 0.06}, {"travel": lambda x: jnp.minimum(x, (hidden, top)[1])}
    )
    with pytest.warns(UserWarning, match="`hidden`: cannot pickle"):
        done = run(study(9.0), tmp_path, 2 * CHUNK)
    same(run(study(9.0), tmp_path, 2 * CHUNK), done)
    with pytest.raises(ValueError, match=r"other values: sample \d+ has travel"):
        run(study(4.05), tmp_path, 2 * CHUNK)


@pytest.mark.parametrize("bad", [3, "", object()])
def test_what_is_no_store_is_refused(study, bad):
    with pytest.raises(ValueError, match="`store` must be a folder"):
        run(study, bad)


def test_unknown_addresses_are_refused(study):
    with pytest.raises(ValueError, match="nowhere"):
        run(study, "nowhere://campaign")


def test_a_full_disk_ends_with_a_sentence_and_the_same_call_goes_on(study, calm, narrow):
    url = "narrow://full"
    narrow.setattr(Narrow, "room", 3)
    with pytest.raises(
        mbs.StoreError, match=f"No space left on device. 3 of {COUNT} chunks are kept in {url}; the same"
    ):
        run(study, url)
    assert len(chunks(url)) == 3 and not [name for name in Narrow.store if "claims" in name]
    narrow.setattr(Narrow, "room", 10**9)
    same(run(study, url), calm)


def test_files_that_cannot_be_written_leave_no_drafts(study, calm, tmp_path):
    """A real file system that takes no file as large as a chunk."""
    run(study, tmp_path, 2 * CHUNK)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(mbs.StoreError, match=f"File too large. 2 of {COUNT} chunks are kept in {tmp_path}"):
            run(study, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000000.parquet", "00000001.parquet", "_manifest.json"]
    same(run(study, tmp_path), calm)


def test_what_is_made_is_written_before_an_interrupt_ends_it(study, calm, narrow):
    merge, merged = mbs.Tally.merge, []

    def interrupted(tally, statistics):
        merged.append(statistics)
        if len(merged) == 4:
            raise KeyboardInterrupt
        merge(tally, statistics)

    url = "narrow://interrupted"
    narrow.setattr(Narrow, "pause", 0.05)
    narrow.setattr(mbs.Tally, "merge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(study, url)
    assert len(chunks(url)) == 4 and not [name for name in Narrow.store if "claims" in name]
    narrow.setattr(mbs.Tally, "merge", merge)
    same(run(study, url), calm)


def test_memory_is_bounded_where_writing_is_slow(study, narrow):
    """Not more than a few chunks wait to be written."""
    made, waiting = [], []
    write = Store.write

    def slow(self, k, *given):
        time.sleep(0.03)
        waiting.append(len(made) - len(waiting))
        write(self, k, *given)

    merge = mbs.Tally.merge
    narrow.setattr(Store, "write", slow)
    narrow.setattr(mbs.Tally, "merge", lambda tally, given: (made.append(0), merge(tally, given))[1])
    run(study, "narrow://slow", 20 * CHUNK)
    assert len(waiting) == len(made) == 20 and max(waiting) <= 6


def test_until_stops_at_the_first_chunk_that_is_enough(study, tmp_path):
    most = 40 * CHUNK
    sample = mbs.monte_carlo(study, most, chunk=CHUNK)
    square, total = sample.values.T
    rejected = {"square": square > 4.2, "yield": (square > 4.2) | (total < 2.6)}
    for name, goal in (("square", 0.013), ("yield", 0.012)):
        p = np.array([rejected[name][: k * CHUNK].mean() for k in range(1, 41)])
        error = np.sqrt(p * (1 - p) / (CHUNK * np.arange(1, 41)))
        stop = int(np.argmax(error <= goal)) + 1
        assert 5 < stop < 35
        done = run(study, tmp_path / name, most, until={name: goal})
        assert done.tally.n == stop * CHUNK
        assert len(done.sample().values) == stop * CHUNK
        assert run(study, None, most, until={name: goal}).tally.n == stop * CHUNK
        run(study, tmp_path / name, most)  # what is there is not counted
        again = run(study, tmp_path / name, most, until={name: goal})
        assert again.tally.n == stop * CHUNK and len(chunks(tmp_path / name)) == 40
        np.testing.assert_array_equal(again.tally.errors, done.tally.errors)
    assert run(study, None, 5 * CHUNK, until={"yield": 1e-6}).tally.n == 5 * CHUNK


@pytest.mark.parametrize(
    "bad, words",
    [
        ({"until": {"weight": 0.1}}, "'weight', which is neither 'yield' nor a measure; these are square, sum"),
        ({"until": {"yield": 0.0}}, "'yield' must be a positive standard error, got 0.0"),
        ({"until": {}}, "must name what is to be precise"),
        ({"until": {"yield": 0.1}, "method": "sobol"}, "`until` is for random samples"),
    ],
)
def test_goals_that_make_no_sense_are_refused(study, bad, words):
    with pytest.raises(ValueError, match=words):
        run(study, **bad)


def test_claims_of_the_living_hold_and_those_of_the_dead_expire(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "EXPIRED", 0.5)
    monkeypatch.setattr(claims, "RENEWED", 0.05)
    store = Store(tmp_path)
    with Claims(store) as a, Claims(store) as b:
        assert a.take(3) and not b.take(3) and b.take(4) and not a.take(4)
        time.sleep(0.8)  # heartbeats keep them
        assert not b.take(3) and not a.take(4)
        a.drop(3)
        time.sleep(0.2)
        assert b.take(3)
    assert not list(tmp_path.iterdir())

    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    mine = os.uname().nodename
    claim = lambda host, pid: json.dumps({"host": host, "pid": pid, "beat": 1, "chunks": [7]})
    with Claims(store) as a:
        (tmp_path / "_claims" / "gone.json").write_text(claim(mine, child.pid))
        assert a.take(7)  # its process is gone
        assert not (tmp_path / "_claims" / "gone.json").exists()
        a.drop(7)
        (tmp_path / "_claims" / "far.json").write_text(claim("elsewhere", child.pid))
        assert not a.take(7)
        time.sleep(0.6)
        assert a.take(7)  # no heartbeat
    assert not list(tmp_path.iterdir())


def test_of_two_that_claim_at_the_same_time_one_keeps_it(tmp_path, monkeypatch):
    """One writes its claim when the other has looked, and has not written yet."""
    a, b = Claims(Store(tmp_path)), Claims(Store(tmp_path))
    a.owner, b.owner = "a", "b"

    def meets(late, early):
        """What the later one gets."""
        look, early.mine = late._look, {5}
        monkeypatch.setattr(late, "_look", lambda: (look(), monkeypatch.setattr(late, "_look", look), early._write()))
        return late.take(5)

    with a, b:
        assert not meets(b, a) and not b.mine
        a.drop(5)
        a._write()
        assert meets(a, b)
        assert not b.take(5)


def test_chunks_of_others_are_waited_for_and_taken_over_when_they_die(study, calm, tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "EXPIRED", 0.5)
    run(study, tmp_path, CHUNK)
    (tmp_path / "_claims").mkdir()
    claim = {"host": "elsewhere", "pid": 1, "beat": 1, "chunks": [3, 5]}
    (tmp_path / "_claims" / "far.json").write_text(json.dumps(claim))
    order = []
    write = Store.write
    monkeypatch.setattr(Store, "write", lambda self, k, *given: (order.append(k), write(self, k, *given)))
    same(run(study, tmp_path), calm)
    assert sorted(order[:-2]) == [1, 2, 4, 6, 7] and sorted(order[-2:]) == [3, 5]
    assert not (tmp_path / "_claims").exists()


@pytest.mark.long
def test_two_campaigns_on_one_store_share_the_work_and_outlive_each_other(tmp_path):
    """Two processes at the same time; then two of which one is killed."""
    count, root = 300, pathlib.Path(__file__).parent.parent
    command = [sys.executable, "-m", "tests.campaign_script", "--shared"]

    def start(store):
        given = {"cwd": root, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        both = [subprocess.Popen([*command, str(store), str(count * 64), "64"], **given) for _ in range(2)]
        for process in both:
            assert process.stdout.readline().strip() == "ready"
        for process in both:
            process.stdin.write("go\n")
            process.stdin.flush()
        return both

    def end(process):
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        made, numbers = out.strip().split(maxsplit=1)
        return int(made), numbers

    first, second = map(end, start(tmp_path / "both"))
    assert first[1] == second[1]
    assert min(first[0], second[0]) > count / 5
    assert count <= first[0] + second[0] <= 1.05 * count

    killed, left = start(tmp_path / "killed")
    while len(list((tmp_path / "killed").glob("*.parquet"))) < count / 3:
        time.sleep(0.002)
    killed.kill()
    killed.communicate()
    assert len(list((tmp_path / "killed").glob("*.parquet"))) < count
    _, numbers = end(left)
    assert numbers == first[1]
    assert chunks(tmp_path / "killed") == chunks(tmp_path / "both")
    assert not (tmp_path / "killed" / "_claims").exists()
