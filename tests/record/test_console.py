"""What a user sees, on a real terminal (a pty) and through a real pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

SCRIPT = """
import time
from sam_repro.tasks.classification.declared import of_images
from sam_repro.record.console import Console
console = Console(total_steps=30, epochs=3, metric=of_images(10)[0])
for step in range(1, 31):
    time.sleep(0.02)
    console.advance(step)
    if step == 1 or step % 5 == 0:
        epoch = (step + 9) // 10
        console.record({"kind": "step", "step": step, "epoch": epoch, "loss": 3 / step, "images_per_s": 777.7})
    if step % 10 == 0:
        accuracy = 3.0 * step
        console.record({"kind": "epoch", "step": step, "epoch": epoch, "train_loss": 0.5, "test_accuracy": accuracy})
    if step == 15:
        console.say("a [note] in between")
console.close()
console.close()
print("after")
"""


def in_a_terminal(script: str, columns: int = 100, term: str = "xterm-256color") -> str:
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = {**os.environ, "TERM": term}
    process = subprocess.Popen([sys.executable, "-c", script], stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    output = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # how Linux says that the last writer is gone
            break
        if not part:
            break
        output += part
    os.close(parent)
    assert process.wait() == 0, output.decode()
    return output.decode()


@pytest.mark.parametrize("columns", [100, 40])
def test_one_bar_on_a_terminal(columns: int) -> None:
    output = in_a_terminal(SCRIPT, columns)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    assert "a [note] in between" in text
    assert text.rstrip().endswith("after")
    # One line is drawn over and over: what remains are the note, the finished bar and the line after it.
    kept = [line.split("\r")[-1].strip() for line in text.split("\r\n")]
    assert len([line for line in kept if line]) == 3
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")  # the cursor is there again
    if columns == 100:
        for part in ("epoch 3/3", "100%", "loss 0.500", "test 90.00 %", "778 images/s"):
            assert part in kept[-3], part
        assert re.search(r"\d\d:\d\d", text)  # the time that remains


def test_plain_lines_on_a_terminal_that_can_only_print() -> None:
    output = in_a_terminal(SCRIPT, term="dumb")
    assert "\x1b" not in output
    assert len(output.splitlines()) == 6


def test_plain_lines_in_a_pipe() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"epoch 1/3  step 1/30  loss 3\.000  778 images/s", first)
    assert re.fullmatch(r"epoch 1/3  step 10/30  loss 0\.500  test 30\.00 %  778 images/s  ETA 0:00:0\d", rest[0])
    assert rest[1] == "a [note] in between"
    assert [line.split("  ")[0] for line in rest[2:4]] == ["epoch 2/3", "epoch 3/3"]
    assert rest[4:] == ["after"]


def test_a_reader_that_goes_away_does_not_end_the_run() -> None:
    script = SCRIPT + "import sys; print('after', file=sys.stderr)"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == "after\n"
    assert process.wait() == 0


def test_rich_is_not_imported_without_a_terminal() -> None:
    script = SCRIPT + "import sys; assert 'rich' not in sys.modules, 'rich'; assert 'torch' not in sys.modules, 'torch'"
    subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
