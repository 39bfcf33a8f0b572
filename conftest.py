"""float64 throughout, and a compilation cache that outlives the run."""

import gc
import os
import pathlib
import shutil
import subprocess
import zlib

import jax
import pytest


# of the user, not of the checkout: compiling is most of the time, and another clone needs the same programs
_CACHES = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
_CACHE = os.environ.get("MBSJAX_CACHE", str(_CACHES / "mbsjax-tests"))
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
# for the processes that tests start: demo, notebooks, campaigns
os.environ |= {"JAX_COMPILATION_CACHE_DIR": _CACHE, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2"}
# Compiling is most of the time: without LLVM's passes, without those that look for what a loop does not change, and
# without the newer way of making fused loops, programs are compiled in half of it, and run three times as long.
_LOOPS = "while-loop-invariant-code-motion,simplify-while-loops,while-loop-constant-sinking"
_FAST = f"--xla_backend_optimization_level=0 --xla_disable_hlo_passes={_LOOPS}"
if jax.version.__version_info__ < (0, 11):  # later ones do not know it, and abort
    _FAST += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{_FAST} {os.environ.get('XLA_FLAGS', '')}".strip()

# Tracing makes many small objects that stay: to look for garbage among them after every 700 takes a fifth of its time.
gc.freeze()
gc.set_threshold(50_000, 20, 100)

_MAPS = pathlib.Path("/proc/self/maps")
_TURNS = 10


def pytest_collection_modifyitems(config, items):
    """Of the tests that are marked `long` every run takes a part, in turn by the commit, unless a marker or a test is
    asked for (`make test-long`)."""
    if config.option.markexpr or config.option.keyword or any("::" in arg for arg in config.args):
        return
    turn = _commits(config.rootpath) % _TURNS
    due = lambda item: not item.get_closest_marker("long") or zlib.crc32(_named(item).encode()) % _TURNS == turn
    config.hook.pytest_deselected(items=[item for item in items if not due(item)])
    items[:] = filter(due, items)


def _named(item) -> str:
    """What a test that takes its turn is called: by its file, if all in it are long, for they share what is dear."""
    node, _ = next(item.iter_markers_with_node("long"))
    return node.nodeid


def _commits(folder: pathlib.Path) -> int:
    """How many commits led to this one; 0 where there is no history."""
    asked = ["git", "-C", str(folder), "rev-list", "--count", "HEAD"]
    try:
        return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return 0


@pytest.fixture(autouse=True)
def few_programs():
    """Forgets the compiled programs before there are too many: each takes pages of its own, and Linux gives a process
    65530 stretches of them (`vm.max_map_count`); at the next one, the process would die."""
    from mbsjax._programs import called, kept  # here: what is imported before the tests are found is not type-checked

    called.SPARE = False  # each core has a worker
    yield
    kept.keep(None)  # a command may have said where
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > 25000:
        jax.clear_caches()
        called.forget()
        gc.collect()


@pytest.fixture(scope="module")
def browser():
    """Chromium, to look at pages with."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        told = "the page is tried in Chromium, which is not installed"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a viewer, and sees to it that nothing goes wrong in it and nothing else is asked for."""
    from tests.viewing import until

    complaints, context = [], browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")

    def opened(viewer, hash: str = ""):
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        address = viewer.save(tmp_path / "page.html").as_uri()
        page.on("request", lambda r: complaints.append(r.url) if not r.url.startswith(address) else None)
        page.goto(address + hash)
        until(page, "'mbsjax' in window")
        return page

    yield opened
    context.close()
    assert complaints == []
