"""However a plug-in reads what it goes by: a change of that is noticed, or its runs are not stored."""

from __future__ import annotations

import gc
import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import cosim
from cosim.experiment.store.runs import open_store

pytestmark = [  # plug-ins don't close what they open
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLUGIN = """
{top}
import numpy as np
from cosim.plugins import DeviceMesh, Operation, OpKind, Program, Workload, WorkloadSpec
class W(WorkloadSpec):
    '''It takes as many milliseconds as it reads'''
    def build(self, context):
        import pathlib
        folder = pathlib.Path(__file__).parent
        file = str(folder / 'data')
{body}
        operation = Operation('s', OpKind.COMPUTE, duration_ps=int(value) * 10**9)
        return Workload('w', DeviceMesh({{'r': 1}}), (Program('p', (operation,)),), np.zeros(1, np.int32))
"""
SCENARIO = """
topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}
network: fair_share
jobs: [{name: a, workload: {plugin: 'w.py:W'}}]
"""
THREAD = "import threading"
SEEN = {
    "open": ("", "value = open(file).read()"),
    "open of bytes": ("", "value = open(file.encode()).read()"),
    "a path": ("", "value = (folder / 'data').read_text()"),
    "a thread": (
        THREAD,
        "got = []\nt = threading.Thread(target=lambda: got.append(open(file).read()))\n"
        "t.start(); t.join(); value = got[0]",
    ),
    "numpy": ("", "value = np.loadtxt(file)"),
    "fromfile": ("", "value = bytes(np.fromfile(file, 'u1'))"),
    "memmap": ("", "value = bytes(np.memmap(file, 'u1', 'r'))"),
    "csv": ("import csv", "value = next(csv.reader(open(file)))[0]"),
    "json": ("import json", "value = json.load(open(file))"),
    "yaml": ("import yaml", "value = yaml.safe_load(open(file))"),
    "io": ("import io", "value = io.open(file).read()"),
    "code": ("import io", "value = io.open_code(file).read()"),
    "gzip beside": ("import gzip", "value = gzip.open(file + '.gz').read()"),
    "lzma beside": ("import lzma", "value = lzma.open(file + '.xz').read()"),
    "a listing": ("", "value = sorted(folder.glob('is-*'))[0].name[3:]"),
    "names": ("", "value = next(folder.rglob('is-*')).name[3:]"),
    "what is not there": (
        "",
        "try: value = open(file + '-new').read()\nexcept OSError: value = 10",
    ),
    "a link": ("", "value = open(file + '-link').read()"),
    "at the top": ("VALUE = open(__file__.replace('w.py', 'data')).read()", "value = VALUE"),
    "a module": ("import helper", "value = helper.X"),
    "a module's name": ("from helper import X", "value = X"),
    "a package": ("from parts.inner import X", "value = X"),
    "a module of a module": ("from outer import X", "value = X"),
    "a script's own text": ("", "value = 10  # changed in place"),
}
NOT_STORED = {
    "read and write": ("", "value = open(file, 'r+').read()"),
    "memmap to write": ("", "value = bytes(np.memmap(file, 'u1', 'r+'))"),
    "append": ("", "f = open(file, 'a+'); f.seek(0); value = f.read()"),
    "descriptor": ("import os", "value = os.read(os.open(file, os.O_RDONLY), 9)"),
    "folder descriptor": (
        "import os",
        "value = os.read(os.open('data', os.O_RDONLY, dir_fd=os.open(folder, os.O_RDONLY)), 9)",
    ),
    "system": ("import subprocess", "value = subprocess.check_output(['cat', file])"),
    "popen": ("import os", "with os.popen('cat ' + file) as said: value = said.read()"),
    "fork": (
        "import multiprocessing",
        "p = multiprocessing.get_context('fork').Pool(1); value = p.apply(eval, [f'open({file!r}).read()'])"
        "\np.terminate(); p.join()",
    ),
    "sqlite": (
        "import sqlite3",
        "c = sqlite3.connect(file + '.db'); value = c.execute('select x from t').fetchone()[0]; c.close()",
    ),
    "size": ("", "value = (folder / 'data').stat().st_size * 0 + int(open(file).read())"),
    "presence": ("", "value = 77 if (folder / 'data-new').exists() else 10"),
    "presence by os": ("from os.path import exists", "value = 77 if exists(file + '-new') else 10"),
    "environment": ("import os", "value = os.environ.get('WAYS', '10')"),
    "getenv": ("from os import getenv", "value = getenv('WAYS', '10')"),
    "expanded": ("from os.path import expandvars", "value = expandvars('$WAYS')"),
    "clock": ("import time", "value = 10 + 0 * time.time()"),
    "draws": ("import random", "value = 10 + 0 * random.random()"),
    "import by name": ("import importlib", "value = importlib.import_module('json') and open(file).read()"),
    "evaluated": ("", "value = eval('open(file).read()')"),
    "C": (
        "import ctypes",
        "libc = ctypes.CDLL(None); f = libc.open(file.encode(), 0); b = ctypes.create_string_buffer(9)\n"
        "libc.read(f, b, 9); value = b.value",
    ),
    "a lazy import": ("", "from sys import path\nvalue = open(file).read()"),
    "the system's": ("", "value = open(file).read() + open('/proc/self/comm').read()[:0]"),
}


def write(folder: Path, way: tuple[str, str], number: int) -> None:
    """Everything that any of the ways goes by."""
    import gzip
    import lzma

    top, body = way
    body = body.replace("value = 10  #", f"value = {number}  #")
    (folder / "w.py").write_text(
        PLUGIN.format(top=top, body="\n".join(f"        {line}" for line in body.splitlines()))
    )
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "real").write_text(str(number))
    (folder / "data").write_text(str(number))
    (folder / "data.gz").write_bytes(gzip.compress(str(number).encode(), mtime=0))
    (folder / "data.xz").write_bytes(lzma.compress(str(number).encode()))
    (folder / "helper.py").write_text(f"X = {number}\n")
    (folder / "outer.py").write_text("from helper import X\n")
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts/__init__.py").touch()
    (folder / "parts/inner.py").write_text(f"X = {number}\n")
    if not (folder / "data-link").is_symlink():
        (folder / "data-link").symlink_to("real")
    for old in folder.glob("is-*"):
        old.unlink()
    (folder / f"is-{number}").touch()
    if number != 10:
        (folder / "data-new").write_text(str(number))
    if way == NOT_STORED["sqlite"]:
        with sqlite3.connect(folder / "data.db") as base:
            base.execute("create table t (x int)")
            base.execute("insert into t values (?)", [number])
        base.close()
    os.environ["WAYS"] = str(number)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYS", "")


@pytest.fixture(autouse=True, scope="module")
def _left_open() -> Iterator[None]:
    yield
    gc.collect()  # what they left open is theirs, and not the next file's


def milliseconds(folder: Path, *, store: bool = True) -> int:
    where = folder / "store" if store else None
    run = cosim.run(folder / "s.yaml", store=where)
    mean_ps = run.summary.jobs[0].iteration_mean_ps
    assert mean_ps is not None
    return round(mean_ps / 10**9)


@pytest.mark.parametrize("way", SEEN)
def test_a_change_of_what_is_read_is_noticed_and_a_run_found_again(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))  # as `python -m cosim` has the folder that it runs in
    write(tmp_path, SEEN[way], 10)
    assert [milliseconds(tmp_path), milliseconds(tmp_path)] == [10, 10]
    assert len(open_store(tmp_path / "store").entries()[0]) == 1
    write(tmp_path, SEEN[way], 77)
    assert milliseconds(tmp_path) == 77
    write(tmp_path, SEEN[way], 10)
    (tmp_path / "data-new").unlink()
    assert milliseconds(tmp_path) == 10
    assert len(open_store(tmp_path / "store").entries()[0]) == 2


@pytest.mark.parametrize("way", NOT_STORED)
def test_what_reads_past_what_is_seen_is_run_and_not_stored(
    tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, NOT_STORED[way], 10)
    assert milliseconds(tmp_path) == 10
    assert not open_store(tmp_path / "store").entries()[0]
    assert "not in the store: " in caplog.text


def test_what_an_author_declares_is_stored_and_noticed(tmp_path: Path) -> None:
    """The same reads past what is seen, but that its class says what it reads."""
    way = NOT_STORED["descriptor"]
    for number in (10, 77):
        write(tmp_path, way, number)
        plugin = tmp_path / "w.py"
        declared = "    declared_inputs = ('data',)\n    def build"
        plugin.write_text(plugin.read_text().replace("    def build", declared))
        assert [milliseconds(tmp_path), milliseconds(tmp_path)] == [number, number]
    assert len(open_store(tmp_path / "store").entries()[0]) == 2


EDITS = ("open", "a thread", "a module", "a package", "a listing", "what is not there", "at the top")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_no_answer_is_stale_in_a_random_order_of_edits(tmp_path: Path, seed: int) -> None:
    """Twenty edits each of what is read, and of how; the store against no store."""
    draw = random.Random(seed)
    for _ in range(20):
        write(tmp_path, SEEN[draw.choice(EDITS)], draw.choice([10, 11, 12]))
        if draw.random() < 0.3:
            (tmp_path / "data-new").unlink(missing_ok=True)
        assert milliseconds(tmp_path) == milliseconds(tmp_path, store=False)
