# SPDX-License-Identifier: Apache-2.0
"""The trace of a session: a JSON file in the Trace Event Format, which Perfetto and chrome://tracing open."""
import datetime
import json
import os
import threading
import weakref

__all__ = ["Trace"]


class Trace:
    """Collects the runs of a session and writes them when it ends. Thread-safe."""

    def __init__(self, prefix, begin_ns):
        self.begin_ns = begin_ns
        stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S.%f")
        self.path = f"{prefix}_{stamp}_{os.getpid()}.json"
        self.events = []
        self.lock = threading.Lock()
        self.finalizer = weakref.finalize(self, Trace.write, self.path, self.events, os.getpid())  # without end_profiling

    def add(self, category, name, begin_ns, duration_ns, **args):
        """Adds an event that began at a time of time.monotonic_ns()."""
        event = {"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": duration_ns / 1e3,
                 "ts": (begin_ns - self.begin_ns) / 1e3, "ph": "X", "name": name, "args": args}
        with self.lock:
            self.events.append(event)

    def add_run(self, nodes, begin_ns, end_ns, options):
        """Adds a run and its nodes: (op_type, name, algorithm, duration_ns, end_ns)."""
        self.add("Session", "model_run", begin_ns, end_ns - begin_ns, **({"logid": options.logid} if options is not None and options.logid else {}))
        for index, (op_type, name, algorithm, duration_ns, node_end_ns) in enumerate(nodes):
            more = {"algorithm": algorithm} if algorithm else {}
            self.add("Node", f"{name or op_type}_kernel_time", node_end_ns - duration_ns, duration_ns, op_name=op_type,
                     provider="CPUExecutionProvider", node_index=str(index), **more)

    @staticmethod
    def write(path, events, owner):
        """Writes one event per line, unless this process is a copy of the owner."""
        if os.getpid() != owner:
            return
        with open(path, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n")

    def end(self):
        """Writes the file and returns its path, or "" if it was written before."""
        if not self.finalizer.alive:
            return ""
        with self.lock:
            self.finalizer()
        return self.path
