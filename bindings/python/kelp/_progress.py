# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr, in a terminal or notebook, for work that takes a while."""
import os
import shutil
import sys
import threading
import time

__all__ = ["Progress"]

AFTER_S = 0.5
EVERY_S = 0.1
BAR = 24


def in_notebook():
    """Returns whether this runs in a Jupyter kernel. IPython in a terminal is not one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def is_wanted(asked):
    """Returns whether to draw a bar. `asked` None: in a terminal or notebook, unless KELP_NO_PROGRESS is set."""
    if asked is not None:
        return bool(asked)
    if os.environ.get("KELP_NO_PROGRESS"):
        return False
    try:
        return sys.stderr.isatty() or in_notebook()
    except (AttributeError, ValueError):  # stderr is missing or closed
        return False


class Progress:
    """Shows `what` and a bar during a `with` block. fraction: a function that returns the progress from 0 to 1; None: unknown.

    >>> import io, sys
    >>> kept, sys.stderr = sys.stderr, io.StringIO()
    >>> with Progress("counting", lambda: 0.5, asked=True, after_s=0):
    ...     pass
    >>> sys.stderr, shown = kept, sys.stderr.getvalue()
    >>> "counting [############------------]  50 %" in shown
    True
    """

    def __init__(self, what, fraction=None, asked=None, after_s=None):
        self.what = what
        self.fraction = fraction
        self.wanted = is_wanted(asked)
        self.after_s = AFTER_S if after_s is None else after_s
        self.ended = threading.Event()
        self.thread = None
        self.shown = 0  # width of the line
        self.drawn = 0

    def __enter__(self):
        if self.wanted:
            self.out = sys.stderr
            self.begin = time.monotonic()
            if self.after_s <= 0:
                self.draw()
            self.thread = threading.Thread(target=self.watch, name="kelp-progress", daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_):
        if self.thread is not None:
            self.ended.set()
            self.thread.join()
            if self.shown:
                self.write("\r" + " " * self.shown + "\r")

    def watch(self):
        """Draws on a separate thread; the work does not hold the GIL."""
        pause = self.after_s if self.after_s > 0 else EVERY_S
        while not self.ended.wait(pause):
            self.draw()
            pause = EVERY_S

    def draw(self):
        """Draws the line again."""
        seconds = time.monotonic() - self.begin
        done = self.fraction() if self.fraction else None
        if done is None:
            at = self.drawn % (2 * BAR - 6)
            at = min(at, 2 * BAR - 6 - at)
            bar, percent = "-" * at + "###" + "-" * (BAR - 3 - at), ""
        else:
            full = int(BAR * min(max(done, 0), 1))
            bar, percent = "#" * full + "-" * (BAR - full), f" {100 * done:3.0f} %"
        end = f" [{bar}]{percent} {seconds:.1f} s"
        room = shutil.get_terminal_size().columns - 1 - len(end)
        what = self.what if len(self.what) <= room else "…" + self.what[len(self.what) - max(room - 1, 0):]
        line = what + end
        self.write("\r" + line + " " * (self.shown - len(line)))
        self.shown = len(line)
        self.drawn += 1

    def write(self, text):
        """Ignores errors of a closed stderr."""
        try:
            self.out.write(text)
            self.out.flush()
        except (OSError, ValueError):
            self.ended.set()
