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
ENDLESS = 100000  # steps: it is stopped


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
        time.sleep(0.03)


class GrowingLines:
    """The lines of files that are only appended to, each read once."""

    def __init__(self):
        self.read = {}  # path -> (bytes, lines)

    def of(self, path):
        done, lines = self.read.get(path, (0, []))
        if not os.path.exists(path):
            return lines
        with open(path, "rb") as file:
            file.seek(done)
            added = file.read()
        whole = added[:added.rfind(b"\n") + 1]
        for line in whole.splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:  # a process that was killed may have left half a line
                continue
        self.read[path] = (done + len(whole), lines)
        return lines


class Fleet:
    def __init__(self, runs: Runs, name, size, spares, steps=ENDLESS, overrides=(), failpoints=""):
        self.runs, self.name, self.spares, self.steps = runs, name, spares, steps
        self.nodes, self.ranks_per_node = (int(word) for word in size.split("x"))
        self.overrides, self.failpoints = list(overrides), failpoints
        self.directory = runs.directory(name)
        self.disks = self.directory + "-nodes"
        self.output = self.directory + "-output"
        self.process = None
        self.lines = GrowingLines()
        self.joined = []  # nodes beyond those of the supervisor's own fleet

    # The supervisor.

    def command(self):
        command = [self.runs.program, "supervise", "--local", f"{self.nodes}x{self.ranks_per_node}", "--spares", str(self.spares),
                   "--nodes-dir", self.disks, "-c", self.runs.recipe, f"trainer.max_steps={self.steps}",
                   f"exp_manager.explicit_log_dir={self.directory}", f"{CALLBACK}local_dirpath={self.disks}/%n/checkpoints",
                   *self.overrides]
        return command + (["--failpoints", self.failpoints] if self.failpoints else [])

    def start(self, environment=None):
        """The supervisor: the first, or one that takes over what runs. `environment` is added to this process's own."""
        with open(self.output, "a") as output:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                            env={**os.environ, **(environment or {})})

    def take_over(self, environment=None):
        """A supervisor in place of one that has ended; returns once it leads."""
        terms = self.terms()
        self.start(environment)
        self.wait_for("a new term", lambda: self.terms() > terms)

    def terms(self):
        return len(glob.glob(os.path.join(self.directory, "control", "term-*.jsonl")))

    def kill_supervisor(self):
        self.process.kill()
        self.process.wait()

    def join(self, node, environment=None, through=()):
        """A further node, whose monitor is started by hand: through a command such as unshare."""
        command = [*through, self.runs.program, "monitor", "--run", self.directory, "--node", node,
                   "--disk", os.path.join(self.disks, node)]
        if self.failpoints:
            command += ["--failpoints", self.failpoints]
        self.joined.append(node)
        with open(self.output + "-" + node, "a") as output:
            # In a session of its own, as a machine's service manager starts it.
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                             env={**os.environ, **(environment or {})}, start_new_session=True)
        self.wait_for(f"monitor of {node}", lambda: self.monitor(node))
        self.wait_for(f"a report of {node}", lambda: any(fact["kind"] == "heard" and fact.get("node") == node
                                                         for fact in self.journal()))

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
        root = self.memory_root()
        for _ in range(3):
            for pid in self.all_processes():
                kill(pid, signal.SIGKILL)
        if root:
            shutil.rmtree(root, ignore_errors=True)

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
        return [f"node{index}" for index in range(self.nodes + self.spares)] + self.joined

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

    def lose_nodes(self, *nodes):
        """All their processes and all they held, at once."""
        pids = []
        memories = [os.path.join(self.memory_root(), node) for node in nodes]
        for node, memory in zip(nodes, memories):
            pids += [pid_in(path) for path in glob.glob(os.path.join(memory, "monitor", "processes", "*"))]
            # Parents last: a group of stopped processes that is orphaned is woken up by the kernel, with SIGHUP.
            pids += [self.monitor(node), self.anchor(node)]
        # Without its folder its anchor is not started again; stopped, nobody makes that folder anew.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                kill(pid, number)
            for node in nodes:
                shutil.rmtree(os.path.join(self.disks, node), ignore_errors=True)
        for memory in memories:
            shutil.rmtree(memory, ignore_errors=True)

    def bring_back(self, *nodes):
        """Empty, as spares."""
        for node in nodes:
            os.makedirs(os.path.join(self.disks, node), exist_ok=True)
        for node in nodes:
            wait_for(f"the monitor of {node}", lambda: self.monitor(node))

    def kill_everything(self):
        """Supervisor, anchors, monitors, ranks, stores, as when a machine's user is thrown out; files stay."""
        self.kill_supervisor()
        while pids := self.all_processes():
            for pid in pids:
                kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def spare(self):
        members = [node["node"] for node in self.roster()["nodes"]]
        return next((node for node in self.node_names() if node not in members and self.monitor(node)), None)

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
            for line in self.lines.of(path):
                if line.get("event") == "fact":
                    facts.append({"mono": line["mono"], "step": line["step"], "evidence": line["reason"], "term": path,
                              **line["fields"]})
        return facts

    def steps_done(self):
        """[(monotonic seconds, step)], as rank 0 said it, of all generations."""
        return [(event["mono"], event["step"]) for event in self.events()
                if event["event"] == "metrics" and event["fields"].get("kind", "train") == "train"]

    def events(self):
        return self.lines.of(os.path.join(self.directory, "events.jsonl"))

    def best_step(self):
        return max((step for _, step in self.steps_done()), default=-1)

    def wait_for_steps(self, more):
        """Until so many further steps were done than any generation has by now."""
        goal = self.best_step() + more
        self.wait_for(f"step {goal}", lambda: self.best_step() >= goal)

    def struck_at(self, generation, rank, place):
        """When a failpoint acted, as its rank wrote in its log; None: it did not."""
        for path in glob.glob(os.path.join(self.disks, "*", "logs", f"g{generation:06}-r{rank:05}.log")):
            with open(path, errors="replace") as file:
                for line in file:
                    if line.startswith(f"failpoint {place}: "):
                        return float(line.rsplit(" at ", 1)[1])
        return None

    def persistent_steps(self):
        """Steps that the persistent tier holds, whole or not."""
        return sorted(int(name.rsplit("-", 1)[1]) for name in os.listdir(os.path.join(self.directory, "checkpoints"))
                      if name.startswith("step-")) if os.path.isdir(os.path.join(self.directory, "checkpoints")) else []

    def wait_for_generation(self, number):
        self.wait_for(f"generation {number}", lambda: self.generation() >= number)

    def wait_for(self, what, condition, seconds=PATIENCE):
        wait_for(f"{what} of {self.name}", lambda: condition() or self.process.poll() is not None, seconds)
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
