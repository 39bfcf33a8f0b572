"""Claims: who is at which chunk, so that campaigns on one store at the same time share the work.

Claims are advice. Two that make the same chunk write the same bits.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from typing import Any

from .store import Store


FOLDER = "_claims"
RENEWED, EXPIRED = 5.0, 60.0  # seconds


class Claims:
    """The claims of one campaign, in a file of its own. While the campaign lives, a thread counts its heartbeat up.

    Another campaign's claims are dead when its heartbeat has stood still for a minute of this machine's own clock, or
    at once when its process was on this host and is gone.
    """

    def __init__(self, store: Store):
        self.store, self.owner = store, uuid.uuid4().hex
        self.mine: set[int] = set()
        self.others: dict[str, set[int]] = {}  # of the others alive
        self._beat, self._seen = 0, {}  # the heartbeat of each, and since when it is known
        self._looked = -float("inf")
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> "Claims":
        if self.store.local:
            self.store.files.makedirs(f"{self.store.root}/{FOLDER}", exist_ok=True)
        self._write()
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        self.store.remove(f"{FOLDER}/{self.owner}.json")
        if self.store.local:
            with contextlib.suppress(OSError):
                os.rmdir(f"{self.store.root}/{FOLDER}")  # unless others are there

    def take(self, k: int) -> bool:
        """Claims a chunk, unless another one is at it. Of two that claim it at the same time, one keeps it: what is
        mine is written before the others' claims are read again."""
        alone = not self.others
        if alone and not self.store.local and time.monotonic() - self._looked < 1.0:
            self.mine.add(k)  # where looking takes long, one that has just begun is seen a little later
            return True
        self._look()
        if any(k in chunks for chunks in self.others.values()):
            return False
        self.mine.add(k)
        self._write()
        if self.others:
            self._look()
            if any(k in chunks and owner < self.owner for owner, chunks in self.others.items()):
                self.mine.discard(k)
                self._write()
                return False
        return True

    def drop(self, k: int) -> None:
        """The chunk is kept in the store, or not needed."""
        self.mine.discard(k)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            with contextlib.suppress(OSError):  # who writes chunks meets it too, and tells it
                self._write()

    def _write(self) -> None:
        with self._lock:
            self._beat += 1
            about = {"host": socket.gethostname(), "pid": os.getpid(), "beat": self._beat, "chunks": sorted(self.mine)}
            self.store.put(f"{FOLDER}/{self.owner}.json", json.dumps(about).encode(), lasting=False)

    def _look(self) -> None:
        """Reads what the others claim; files of the dead are removed."""
        now = self._looked = time.monotonic()
        found = {}
        for name in self.store.names(FOLDER):
            owner, ending = os.path.splitext(name)
            if owner == self.owner or ending != ".json" or name.startswith("."):
                continue
            try:
                about = json.loads(self.store.get(f"{FOLDER}/{name}"))
                beat, gone, chunks = about["beat"], _gone(about["host"], about["pid"]), set(about["chunks"])
            except FileNotFoundError:
                continue
            except (ValueError, KeyError, TypeError):  # being written
                beat, gone, chunks = None, False, set()
            known, since = self._seen.get(owner, (None, now))
            self._seen[owner] = (beat, since if beat == known else now)
            if gone or now - self._seen[owner][1] > EXPIRED:
                self.store.remove(f"{FOLDER}/{name}")
            else:
                found[owner] = chunks
        self.others = found


def _gone(host: str, pid: int) -> bool:
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
