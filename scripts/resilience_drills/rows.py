"""One row per kind of fault: how it is injected into a fleet that trains, and what must come of it."""

import dataclasses
import signal
from typing import Callable

from .fleet import Fleet, kill, wait_for


@dataclasses.dataclass
class Row:
    inject: Callable  # (fleet, moments): strikes, and returns whom it struck
    restarts: bool = True  # a generation follows; else nothing may restart
    most_lost: int = 2
    noticed: float = 1.0  # seconds, where the machine has nothing else to do
    done: float = 15.0  # from the fault to the first step that no generation had done
    symptoms: tuple = ()  # the journal names one of these; empty: none is asked for
    is_named: bool = False  # the journal names the rank that was struck, and no other
    after: Callable = lambda fleet, struck: None  # makes good what the next fault needs


def some_rank(fleet, moments):
    return moments.randrange(fleet.nodes * fleet.ranks_per_node)


def signal_rank(number):
    def inject(fleet: Fleet, moments):
        rank = some_rank(fleet, moments)
        kill(fleet.rank(rank), number)
        return f"rank {rank}"
    return inject


def kill_store(fleet, moments):
    kill(fleet.store(), signal.SIGKILL)
    return "store"


def lose_node(fleet, moments):
    node = fleet.node_of(some_rank(fleet, moments))
    fleet.lose_node(node)
    return node


def lose_store_node(fleet, moments):
    node = fleet.roster()["store_node"]
    fleet.lose_node(node)
    return node


def bring_back(fleet, node):
    fleet.bring_back(node)
    wait_for(f"the monitor of {node}", lambda: fleet.monitor(node))


def kill_monitor(fleet, moments):
    node = fleet.node_of(some_rank(fleet, moments))
    before = fleet.monitor(node)
    kill(before, signal.SIGKILL)
    wait_for(f"a new monitor of {node}", lambda: fleet.monitor(node) not in (None, before))
    return node


def kill_anchor(fleet, moments):
    node = fleet.node_of(some_rank(fleet, moments))
    before, monitor = fleet.anchor(node), fleet.monitor(node)
    kill(before, signal.SIGKILL)
    wait_for(f"a new anchor of {node}", lambda: fleet.anchor(node) not in (None, before))
    if fleet.monitor(node) != monitor:
        raise AssertionError(f"the monitor of {node} was started again with its anchor")
    return node


def kill_both(fleet, moments):
    node = fleet.node_of(some_rank(fleet, moments))
    before = fleet.anchor(node), fleet.monitor(node)
    for pid in before:
        kill(pid, signal.SIGKILL)
    wait_for(f"a new monitor of {node}", lambda: fleet.monitor(node) not in (None, before[1]))
    return node


def kill_supervisor(fleet, moments):
    fleet.process.kill()
    fleet.process.wait()
    fleet.start()
    return "supervisor"


def stay_without_supervisor(fleet, moments):
    """The run trains on meanwhile."""
    fleet.process.kill()
    fleet.process.wait()
    goal = fleet.best_step() + 2
    wait_for("steps without a supervisor", lambda: fleet.best_step() >= goal)
    fleet.start()
    return "supervisor"


NODE_LOST = {"most_lost": 2, "noticed": 5.0, "done": 20.0, "symptoms": ("node_gone", "call_failed", "store_ended"), "after": bring_back}
ROWS = {
    "sigkill": Row(signal_rank(signal.SIGKILL), symptoms=("rank_ended", "call_failed")),
    "segv": Row(signal_rank(signal.SIGSEGV), symptoms=("rank_ended", "call_failed")),
    "abort": Row(signal_rank(signal.SIGABRT), symptoms=("rank_ended", "call_failed")),
    "store": Row(kill_store, symptoms=("store_ended", "rank_ended", "call_failed")),
    "sigstop": Row(signal_rank(signal.SIGSTOP), noticed=11.0, done=26.0, symptoms=("rank_stuck",), is_named=True),
    "node": Row(lose_node, **NODE_LOST),
    "store-node": Row(lose_store_node, **NODE_LOST),
    "monitor": Row(kill_monitor, restarts=False, most_lost=0),
    "anchor": Row(kill_anchor, restarts=False, most_lost=0),
    "anchor-and-monitor": Row(kill_both, restarts=False, most_lost=0),
    "supervisor": Row(kill_supervisor, restarts=False, most_lost=0),
    "no-supervisor": Row(stay_without_supervisor, restarts=False, most_lost=0),
}
# Rows with a fleet of their own: what a failpoint does, and how the run ends.
FAILPOINTS = {"throw": ("train.step=throw@step=4,rank=1,generation={first}", ("rank_ended", "call_failed")),
              "exit0": ("train.step=exit0@step=4,rank=1,generation={first}", ("rank_ended", "call_failed"))}
ENDINGS = ["stop", "stop-twice", "crash-always"]

NAMES = [*ROWS, *FAILPOINTS, *ENDINGS]
FAST = ["sigkill", "monitor", "anchor", "node", "supervisor", "stop"]
