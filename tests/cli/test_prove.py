"""``cosim prove``: what is proved, what is wrong, and the exit code of each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cosim.cli import main
from tests.inputs import find, needs

XML = """<algo name="pass" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
<gpu id="0" o_chunks="2"><tb id="0" send="1" recv="1">
<step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0"/>
<step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1"/></tb></gpu>
<gpu id="1" o_chunks="2"><tb id="0" send="0" recv="0">
<step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1"/>
<step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0"/></tb></gpu>
</algo>"""
RING = "chakra/custom_ring_allreduce_8npus_1MB"


def prove(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cosim", "prove", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_a_file_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pass.xml"
    path.write_text(XML)
    assert prove(monkeypatch, str(path)) == 0
    assert capsys.readouterr().out.startswith("proved: pass, all_gather over 2 GPUs, in place\n")


def test_what_is_wrong_is_code_1_and_all_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_text(XML)
    bad.write_text(XML.replace('srcoff="1" dstbuf="o" dstoff="1"/>', 'srcoff="0" dstbuf="o" dstoff="1"/>'))
    assert prove(monkeypatch, str(bad), str(good)) == 1
    out = capsys.readouterr().out
    assert "wrong: " in out
    assert "bad.xml:6: GPU 1, tb 0, step 0 (s to GPU 0 on channel 0; line 6): " in out
    assert "race for chunk 0 of GPU 1's output" in out
    assert "proved: pass" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.xml",), "there is no file none.xml"),
        (("ring",), "which needs --collective and --ranks"),
        (("rng", "--collective", "all_reduce", "--ranks", "4"), "did you mean 'ring'?"),
        (("ring", "--collective", "all_reduc", "--ranks", "4"), "it should be one of all_reduce"),
        (("ring", "--collective", "all_reduce", "--ranks", "1"), "it should be from 2 to 65536"),
        (("ring", "--collective", "all_reduce", "--ranks", "4", "--size", "1Mx"), "--size"),
        (("halving_doubling", "--collective", "all_reduce", "--ranks", "6"), "needs a power of two"),
    ],
)
def test_what_cannot_be_read_is_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert prove(monkeypatch, *words) == 2
    assert says in capsys.readouterr().err


def test_algorithms_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(monkeypatch, "ring", "--collective", "all_reduce", "--ranks", "16", "--size", "16MiB") == 0
    out = capsys.readouterr().out
    assert "proved: ring, all_reduce over 16 ranks" in out
    assert "16 chunks, 480 messages in 30 steps on 1 channel, 503316480 bytes" in out  # 2 x 15 x 16 MiB
    assert (
        prove(monkeypatch, "{algorithm: ring, channels: 2}", "--collective", "broadcast", "--ranks", "4") == 0
    )


@needs(RING)
def test_messages_of_a_chakra_file_that_all_meet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove(monkeypatch, str(find(RING))) == 0
    assert "8 ranks: every SEND meets a RECV of its size" in capsys.readouterr().out


def test_a_message_of_a_chakra_file_that_nobody_sends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small_traces: Path
) -> None:
    assert prove(monkeypatch, str(small_traces / "chakra" / "p2p" / "norecv")) == 1
    assert "has no SEND to match" in capsys.readouterr().out
