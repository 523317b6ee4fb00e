"""One row per kind of fault: how it is injected into a fleet that trains, and what must come of it."""

import dataclasses
import signal
from typing import Callable

from .cgroups import starve
from .fleet import Fleet, kill, wait_for

ENDED = ("rank_ended", "call_failed")
NODE_GONE = ("node_gone", "call_failed", "store_ended", "start_failed")


@dataclasses.dataclass
class Bar:
    """What must come of a fault. Seconds hold where the machine has nothing else to do."""
    restarts: bool = True  # a generation follows; else nothing may restart
    most_lost: int = 2
    noticed: float = 1.0
    done: float = 15.0  # from the fault to the first step that no generation had done
    symptoms: tuple = ()  # the journal names one of these; empty: none is asked for
    is_named: bool = False  # the journal names the rank that was struck, and no other


@dataclasses.dataclass
class Row(Bar):
    """Struck from outside, at a random moment."""
    inject: Callable = None  # (fleet, moments): strikes, and returns whom it struck
    after: Callable = lambda fleet, struck: None  # makes good what the next fault needs
    is_frequent: bool = False  # 20 times instead of 3
    least_nodes: int = 2


def some_rank(fleet, moments):
    return moments.randrange(fleet.nodes * fleet.ranks_per_node)


def some_node(fleet, moments):
    return fleet.node_of(some_rank(fleet, moments))


def signal_rank(number):
    def inject(fleet: Fleet, moments):
        rank = some_rank(fleet, moments)
        kill(fleet.rank(rank), number)
        return f"rank {rank}"
    return inject


def starve_rank(fleet, moments):
    rank = some_rank(fleet, moments)
    starve(fleet.rank(rank))
    return f"rank {rank}"


def kill_store(fleet, moments):
    kill(fleet.store(), signal.SIGKILL)
    return "store"


def lose_node(fleet, moments):
    node = some_node(fleet, moments)
    fleet.lose_nodes(node)
    return node


def lose_store_node(fleet, moments):
    node = fleet.roster()["store_node"]
    fleet.lose_nodes(node)
    return node


def lose_two_nodes(fleet, moments):
    """Of which neither keeps the other's copies: those are on the next node."""
    first = moments.randrange(fleet.nodes)
    members = fleet.roster()["nodes"]
    nodes = [members[index % fleet.nodes]["node"] for index in (first, first + 2)]
    fleet.lose_nodes(*nodes)
    return ", ".join(nodes)


def bring_back(fleet, nodes):
    fleet.bring_back(*nodes.split(", "))


def kill_monitor(fleet, moments):
    node = some_node(fleet, moments)
    before = fleet.monitor(node)
    kill(before, signal.SIGKILL)
    wait_for(f"a new monitor of {node}", lambda: fleet.monitor(node) not in (None, before))
    return node


def kill_anchor(fleet, moments):
    node = some_node(fleet, moments)
    before, monitor = fleet.anchor(node), fleet.monitor(node)
    kill(before, signal.SIGKILL)
    wait_for(f"a new anchor of {node}", lambda: fleet.anchor(node) not in (None, before))
    if fleet.monitor(node) != monitor:
        raise AssertionError(f"the monitor of {node} was started again with its anchor")
    return node


def kill_both(fleet, moments):
    node = some_node(fleet, moments)
    before = fleet.anchor(node), fleet.monitor(node)
    for pid in before:
        kill(pid, signal.SIGKILL)
    wait_for(f"a new monitor of {node}", lambda: fleet.monitor(node) not in (None, before[1]))
    return node


def kill_supervisor(fleet, moments):
    fleet.kill_supervisor()
    fleet.take_over()
    return "supervisor"


def stay_without_supervisor(fleet, moments):
    """The run trains on meanwhile."""
    fleet.kill_supervisor()
    goal = fleet.best_step() + 2
    wait_for("steps without a supervisor", lambda: fleet.best_step() >= goal)
    fleet.take_over()
    return "supervisor"


NODE_LOST = {"noticed": 5.0, "done": 20.0, "symptoms": NODE_GONE, "after": bring_back}
UNHURT = {"restarts": False, "most_lost": 0}
ROWS = {
    "sigkill": Row(inject=signal_rank(signal.SIGKILL), symptoms=ENDED, is_frequent=True),
    "segv": Row(inject=signal_rank(signal.SIGSEGV), symptoms=ENDED),
    "abort": Row(inject=signal_rank(signal.SIGABRT), symptoms=ENDED),
    # Noticed when the kernel kills: the rank must ask for memory first, which it does when it saves.
    "oom": Row(inject=starve_rank, symptoms=ENDED, noticed=2.0),
    "store": Row(inject=kill_store, symptoms=("store_ended", *ENDED)),
    "sigstop": Row(inject=signal_rank(signal.SIGSTOP), noticed=11.0, done=26.0, symptoms=("rank_stuck",), is_named=True,
                   is_frequent=True),
    "node": Row(inject=lose_node, is_frequent=True, **NODE_LOST),
    "store-node": Row(inject=lose_store_node, **NODE_LOST),
    "two-nodes": Row(inject=lose_two_nodes, least_nodes=4, **NODE_LOST),
    "monitor": Row(inject=kill_monitor, **UNHURT),
    "anchor": Row(inject=kill_anchor, **UNHURT),
    "anchor-and-monitor": Row(inject=kill_both, **UNHURT),
    "supervisor": Row(inject=kill_supervisor, **UNHURT),
    "no-supervisor": Row(inject=stay_without_supervisor, **UNHURT),
}


@dataclasses.dataclass
class Planned(Bar):
    """Struck from within, by failpoints on the fleet's command line: {at} stands for rank, step and generation. The last
    one is the fault that is meant; those before it lead to the generation in which it strikes."""
    failpoints: tuple = ()
    asks_for_a_load: bool = False  # before it, a generation has loaded and saved, so that deadlines are known


STUCK = {"noticed": 11.0, "done": 26.0, "symptoms": ("rank_stuck",), "is_named": True}
STUCK_BESIDE_STEPS = {**STUCK, "noticed": 31.0, "done": 46.0, "asks_for_a_load": True}
FIRST = "train.step=abort@{at}"
PLANNED = {
    "throw": Planned(failpoints=("train.step=throw@{at}",), symptoms=ENDED),
    "exit0": Planned(failpoints=("train.step=exit0@{at}",), symptoms=ENDED),
    "spin": Planned(failpoints=("train.step=spin@{at}",), **STUCK),
    "hang-step": Planned(failpoints=("train.step=hang@{at}",), **STUCK),
    "hang-data": Planned(failpoints=("data.batch=hang@{at}",), **STUCK),
    # Every rank beats, and the step takes more than three deadlines.
    "livelock": Planned(failpoints=("engine.action=sleep=8@step={step},generation={generation}",), noticed=32.0, done=47.0,
                        symptoms=("livelock",)),
    "hang-save": Planned(failpoints=("train.save=hang@{at}",), **STUCK_BESIDE_STEPS),
    "hang-load": Planned(failpoints=(FIRST, "train.load=hang@rank={rank},generation={generation}"), **STUCK_BESIDE_STEPS),
    "hang-start": Planned(failpoints=(FIRST, "launch.start=hang@rank={rank},generation={generation}"), **STUCK_BESIDE_STEPS),
}
