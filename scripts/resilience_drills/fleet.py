"""A fleet of folders under a supervisor, seen from outside: its processes, its files, and what its journals say."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

from checkpoint_drills.runs import CALLBACK, Failure, Runs

PATIENCE = 240  # seconds; a busy machine takes its time


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what, condition, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def lines_of(path):
    """A process that was killed may have left half a line."""
    lines = []
    if os.path.exists(path):
        with open(path, errors="replace") as file:
            for line in file:
                try:
                    lines.append(json.loads(line))
                except json.JSONDecodeError:
                    continue
    return lines


class Fleet:
    def __init__(self, runs: Runs, name, size, spares, steps, overrides=(), failpoints=""):
        self.runs, self.name, self.spares, self.steps = runs, name, spares, steps
        self.nodes, self.ranks_per_node = (int(word) for word in size.split("x"))
        self.overrides, self.failpoints = list(overrides), failpoints
        self.directory = runs.directory(name)
        self.disks = self.directory + "-nodes"
        self.output = self.directory + "-output"
        self.process = None

    # The supervisor.

    def command(self):
        command = [self.runs.program, "supervise", "--local", f"{self.nodes}x{self.ranks_per_node}", "--spares", str(self.spares),
                   "--nodes-dir", self.disks, "-c", self.runs.recipe, f"trainer.max_steps={self.steps}",
                   f"exp_manager.explicit_log_dir={self.directory}", f"{CALLBACK}local_dirpath={self.disks}/%n/checkpoints",
                   *self.overrides]
        return command + (["--failpoints", self.failpoints] if self.failpoints else [])

    def start(self):
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=open(self.output, "a"),
                                        stderr=subprocess.STDOUT)

    def wait(self, seconds=10 * PATIENCE):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the supervisor has not ended within {seconds} s\n{self.last_words()}") from None

    def last_words(self):
        with open(self.output, errors="replace") as file:
            return "".join(file.readlines()[-40:])

    def end(self):
        """Nothing of it is left, whatever happened."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for _ in range(3):
            for pid in self.all_processes():
                kill(pid, signal.SIGKILL)
        for memory in self.memories().values():
            shutil.rmtree(os.path.dirname(memory), ignore_errors=True)

    # Its processes, as the kernel knows them.

    def all_processes(self):
        """Everything of this run but the supervisor."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and self.directory in words_of(entry).get("--run", ""):
                found.append(int(entry))
        for records in glob.glob(os.path.join(self.memory_root() or "/nonexistent", "*", "monitor", "processes", "*")):
            pid = pid_in(records)
            if pid and is_alive(pid):
                found.append(pid)
        return found

    def memory_root(self):
        for pid in os.listdir("/proc"):
            words = words_of(pid) if pid.isdigit() else {}
            if words.get("--run") == self.directory and "--memory" in words:
                self.known_memory_root = os.path.dirname(os.path.dirname(words["--memory"]))
        return getattr(self, "known_memory_root", None)

    def memories(self):
        """The folder in memory of each node."""
        root = self.memory_root()
        return {node: os.path.join(root, node) for node in self.node_names()} if root else {}

    def node_names(self):
        return [f"node{index}" for index in range(self.nodes + self.spares)]

    def record(self, node, *path):
        root = self.memory_root()
        pid = pid_in(os.path.join(root, node, "monitor", *path)) if root else None
        return pid if pid and is_alive(pid) else None

    def anchor(self, node):
        return self.record(node, "anchor")

    def monitor(self, node):
        return self.record(node, "worker")

    def rank(self, rank):
        roster = self.roster()
        return self.record(self.node_of(rank, roster), "processes", f"g{roster['generation']:06}-r{rank:05}")

    def store(self):
        roster = self.roster()
        return self.record(roster["store_node"], "processes", f"g{roster['generation']:06}-store")

    def node_of(self, rank, roster=None):
        return (roster or self.roster())["nodes"][rank // self.ranks_per_node]["node"]

    # Faults.

    def lose_node(self, node):
        """All its processes and all it held, at once."""
        pids = [self.anchor(node), self.monitor(node)]
        memory = os.path.join(self.memory_root(), node)
        pids += [pid_in(path) for path in glob.glob(os.path.join(memory, "monitor", "processes", "*"))]
        # Without its folder its anchor is not started again; stopped, nobody makes that folder anew.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                kill(pid, number)
            shutil.rmtree(os.path.join(self.disks, node), ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)

    def bring_back(self, node):
        os.makedirs(os.path.join(self.disks, node), exist_ok=True)

    # Its files.

    def roster(self):
        rosters = sorted(glob.glob(os.path.join(self.directory, "control", "roster-*.json")))
        if not rosters:
            return None
        with open(rosters[-1]) as file:
            return json.load(file)

    def rosters(self):
        found = []
        for path in sorted(glob.glob(os.path.join(self.directory, "control", "roster-*.json"))):
            with open(path) as file:
                found.append(json.load(file))
        return found

    def generation(self):
        roster = self.roster()
        return roster["generation"] if roster else 0

    def journal(self):
        """The facts of all terms, each with the moment at which it was written down."""
        facts = []
        for path in sorted(glob.glob(os.path.join(self.directory, "control", "term-*.jsonl"))):
            for line in lines_of(path):
                if line.get("event") == "fact":
                    facts.append({"mono": line["mono"], "step": line["step"], "evidence": line["reason"], **line["fields"]})
        return facts

    def steps_done(self):
        """[(monotonic seconds, step)], as rank 0 said it, of all generations."""
        return [(event["mono"], event["step"]) for event in self.events()
                if event["event"] == "metrics" and event["fields"].get("kind", "train") == "train"]

    def events(self):
        return lines_of(os.path.join(self.directory, "events.jsonl"))

    def best_step(self):
        return max((step for _, step in self.steps_done()), default=-1)

    def wait_for_steps(self, more):
        """Until so many further steps were done than any generation has by now."""
        goal = self.best_step() + more
        self.wait_for(f"step {goal}", lambda: self.best_step() >= goal)

    def wait_for_generation(self, number):
        self.wait_for(f"generation {number}", lambda: self.generation() >= number)

    def wait_for(self, what, condition):
        wait_for(f"{what} of {self.name}", lambda: condition() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise Failure(f"the supervisor has ended with {self.process.returncode}\n{self.last_words()}")


def words_of(pid):
    """{option: value} of a process's command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {option: value for option, value in zip(words, words[1:]) if option.startswith("--")}


def pid_in(path):
    try:
        with open(path) as file:
            return int(file.read().split()[1])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def kill(pid, number):
    try:
        if pid:
            os.kill(pid, number)
    except ProcessLookupError:
        pass
