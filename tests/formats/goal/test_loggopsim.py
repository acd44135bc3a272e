"""LogGOPSim runs our schedule: with the same network, to a nanosecond for each rounded time."""

import re
from pathlib import Path

import cosim
from tests.formats.consumers import TRAINING, loggopsim


def test_it_takes_as_long_as_we_do(tmp_path: Path) -> None:
    scenario = cosim.loads(TRAINING)
    theirs, ranks = loggopsim(tmp_path, scenario)
    assert theirs.count == ranks == 8
    ours = cosim.run(scenario).records.end_ps
    messages = (tmp_path / "schedule.goal").read_text().count("send") // 8
    assert abs(theirs.end_ps - ours) <= 1000 * 2 * messages  # each time is rounded to a nanosecond


def test_no_message_shares_a_cpu_with_a_calculation(tmp_path: Path) -> None:
    """Where they do, LogGOPSim has messages wait for the host's launches."""
    cosim.translate(cosim.loads(TRAINING), "goal", tmp_path)
    text = (tmp_path / "schedule.goal").read_text()
    of_messages = set(re.findall(r"(?:send|recv) .* cpu (\d+)", text))
    of_work = set(re.findall(r"calc [1-9]\d* cpu (\d+)", text))
    assert len(of_messages) == 1
    assert len(of_work) > 1  # the device's, and the host's launches
    assert not of_messages & of_work
    assert len(re.findall(r"^l\d+: (?:send|recv)", text, re.MULTILINE)) == len(
        re.findall(r"(?:send|recv) .* cpu", text)
    )
