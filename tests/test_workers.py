"""Campaigns by the workers of an executor: threads, processes, Dask; lost ones, broken ones, those of the command."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor

import click.testing
import numpy as np
import pytest
from distributed import Client, LocalCluster

import mbsjax as mbs
from mbsjax._cli import montecarlo as command
from mbsjax._cli.main import main
from mbsjax._tolerance import workers


CHUNK, COUNT = 64, 12
N = CHUNK * (COUNT - 1) + 10
CRANK = """
[parameters]
length = 2.0
[bodies.crank]
points.tip = ["length", 0]
[joints.A]
type = "revolute"
body_a = "ground"
body_b = "crank"
[drive]
A = "t"
[kinematics]
t1 = 1.0
outputs = 3
[measures]
height = "crank.tip.y[-1]"
[tolerances]
length = 0.1
[limits]
height = [1.64, 1.72]
"""
SPAWN = multiprocessing.get_context("spawn")


def plain(model=lambda p: p):
    slope = 3.0
    measures = {"line": lambda p: slope * p["a"], "square": lambda p: p["a"] ** 2}
    return mbs.Study(model, {"a": 2.0}, {"a": 0.3}, measures, limits={"square": (None, 4.2)})


def run(study, store=None, n=N, **given):
    return mbs.campaign(study, n, store, **{"chunk": CHUNK, "progress": False, **given})


def chunks(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def same(tally, other):
    for name in ("mean", "std", "errors", "bins", "least", "classes"):
        np.testing.assert_array_equal(getattr(tally, name), getattr(other, name))


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """An undisturbed campaign by this process."""
    return run(plain(), tmp_path_factory.mktemp("calm"))


@pytest.fixture(scope="module")
def pool():
    """A process that knows nothing."""
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        yield pool


def unpacked():
    info = workers._unpacked.cache_info()
    return info.misses, info.hits


def test_processes_make_the_same_chunks_and_compile_once(calm, pool, tmp_path):
    done = run(plain(), tmp_path, executor=pool)
    assert chunks(tmp_path) == chunks(calm.path)
    same(done.tally, calm.tally)
    assert pool.submit(unpacked).result() == (1, COUNT - 1)
    (tmp_path / "00000003.parquet").unlink()
    same(run(plain(), tmp_path, executor=pool).tally, calm.tally)
    assert chunks(tmp_path) == chunks(calm.path)
    same(run(plain(), executor=pool).tally, calm.tally)
    goal = {"square": 0.018}
    assert N > run(plain(), executor=pool, until=goal).tally.n == run(plain(), until=goal).tally.n


def test_workers_that_do_not_see_the_store_are_noticed(pool):
    with pytest.raises(ValueError, match="workers do not see the store memory://unseen"):
        run(plain(), "memory://unseen", executor=pool)


def test_threads_are_workers_too(calm):
    with ThreadPoolExecutor(2) as threads:
        done = run(plain(), "memory://threads", executor=threads)
    same(done.tally, calm.tally)
    np.testing.assert_array_equal(done.sample().values, calm.sample().values)


class Forgetful(ThreadPoolExecutor):
    """Loses tasks, done or not."""

    def __init__(self, lost):
        super().__init__(2)
        self.lost, self.asked = lost, []

    def submit(self, f, /, *given):
        number = given[2]
        self.asked.append(number)
        future = super().submit(f, *given)
        if self.asked.count(number) > self.lost(number):
            return future
        empty = concurrent.futures.Future()
        future.add_done_callback(lambda _: empty.set_exception(ConnectionError("the worker is gone")))
        return empty


def test_chunks_that_are_lost_are_asked_for_again(calm):
    with Forgetful(lambda number: number % 4) as executor:
        same(run(plain(), executor=executor).tally, calm.tally)
    assert [executor.asked.count(k) for k in range(COUNT)] == [1 + k % 4 for k in range(COUNT)]
    words = "chunk 5 was lost with its worker 4 times: the worker is gone. Without a store, nothing is kept"
    with Forgetful(lambda number: 4 * (number == 5)) as executor, pytest.raises(BrokenExecutor, match=words):
        run(plain(), executor=executor)


def test_more_is_asked_for_where_nothing_waits():
    """As many as there are workers, without being told how many."""
    most, running, lock = 0, 0, threading.Lock()

    class Many(ThreadPoolExecutor):
        def submit(self, f, /, *given):
            return super().submit(self.slow, f, *given)

        def slow(self, f, *given):
            nonlocal most, running
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.1)
            found = f(*given)
            with lock:
                running -= 1
            return found

    with Many(16) as executor:
        run(plain(), n=100 * CHUNK, executor=executor)
    assert most > 12


def test_errors_of_a_model_are_raised_as_they_are():
    def model(p):
        if threading.current_thread().name.startswith("worker"):
            raise ZeroDivisionError("as it is")
        return p

    study = plain(model)
    with ThreadPoolExecutor(2, "worker") as threads, pytest.raises(ZeroDivisionError, match="as it is") as caught:
        run(study, executor=threads)
    assert any("chunk 0, on" in note and "Traceback" in note for note in caught.value.__notes__)


def test_what_is_no_executor_is_refused():
    with pytest.raises(ValueError, match="`executor` must be an executor of concurrent.futures"):
        workers._check(Client)  # as campaigns do: tests check types before
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as forks, pytest.raises(ValueError, match="forked processes"):
        run(plain(), executor=forks)


class Killer(threading.Thread):
    """Kills a process when a store has so many chunks, and tells how many there were."""

    def __init__(self, pid, folder, count):
        super().__init__()
        self.pid, self.folder, self.count, self.found = pid, folder, count, None
        self.start()

    def run(self):
        while (found := len(chunks(self.folder))) < self.count:
            time.sleep(0.002)
        os.kill(self.pid, signal.SIGKILL)
        self.found = found


@pytest.mark.slow
def test_a_broken_pool_tells_what_is_kept(tmp_path):
    count = 200
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        killer = Killer(pool.submit(os.getpid).result(), tmp_path, 20)
        words = rf"(\d+) of {count} chunks are kept in {tmp_path}; the same call goes on"
        with pytest.raises(BrokenExecutor, match=words) as caught:
            run(plain(), tmp_path, count * CHUNK, executor=pool)
    killer.join()
    kept = len(chunks(tmp_path))
    assert 20 <= kept < count and f"{kept} of {count}" in str(caught.value)
    done = run(plain(), tmp_path, count * CHUNK)
    same(done.tally, run(plain(), None, count * CHUNK).tally)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.slow
def test_one_of_two_dask_workers_is_killed_in_the_middle(cluster, tmp_path):
    count, study = 150, plain()
    calm = run(study, tmp_path / "calm", count * CHUNK)
    with Client(cluster) as client:
        pids = client.run(os.getpid)
        killer = Killer(next(iter(pids.values())), tmp_path / "rough", count // 5)
        done = run(study, tmp_path / "rough", count * CHUNK, executor=client.get_executor())
    killer.join()
    assert len(pids) == 2 and killer.found < count // 2
    assert chunks(tmp_path / "rough") == chunks(tmp_path / "calm")
    same(done.tally, calm.tally)


@pytest.mark.slow
def test_the_command_has_workers(cluster, tmp_path, monkeypatch):
    """Processes of this machine, and those of a scheduler; the model comes from a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crank.toml").write_text(CRANK)
    tables = {}
    for name, given in {
        "here": ["-o", "here"],
        "processes": ["-o", "processes", "--workers", "1"],
        "dask": ["--no-store", "--workers", cluster.scheduler_address],
    }.items():
        words = ["montecarlo", "crank.toml", "-n", "200", "--chunk", "64", *given]
        result = click.testing.CliRunner().invoke(main, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        tables[name] = result.stdout.partition("wrote")[0]
    assert len(set(tables.values())) == 1 and "200 samples" in tables["here"]
    assert chunks(tmp_path / "processes") == chunks(tmp_path / "here") != {}


@pytest.mark.parametrize(
    "given, words",
    [
        (["--workers", "0"], "at least one"),
        (["--workers", "tcp://127.0.0.1:9"], "no scheduler answers at tcp://127.0.0.1:9"),
        (["--workers", "nonsense"], "no scheduler answers at nonsense"),
        (["--until", "yield"], "'yield' is not NAME=ERROR"),
        (["--until", "weight=0.1"], "neither 'yield' nor a measure"),
        (["--no-store", "-o", "samples"], "--no-store keeps nothing"),
        (["-o", "nowhere://samples"], "Protocol not known"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(given, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_SECONDS", 0.3)
    (tmp_path / "crank.toml").write_text(CRANK)
    result = click.testing.CliRunner().invoke(main, ["montecarlo", "crank.toml", *given], env={"COLUMNS": "200"})
    assert result.exit_code == 2 and words in result.output
