"""Strikes fleets, row by row, and measures."""

import json
import os
import random
import shutil
import signal
import time

from checkpoint_drills.runs import CALLBACK, MODELS, Failure, Runs, names_of_difference
from layout_words import overrides_of

from .fleet import Fleet, lines_of, wait_for
from .rows import ENDINGS, FAILPOINTS, ROWS

STEPS_PER_FAULT = 8  # at least so many are done between two faults
STEP_SECONDS = 0.3
SAVES = [f"{CALLBACK}every_n_train_steps=1000", f"{CALLBACK}local_every_n_train_steps=1", f"{CALLBACK}local_peer_copy=true",
         f"{CALLBACK}late_save=wait"]
GAVE_UP = 70
STOPPED = 75


class Campaign:
    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.runs = Runs(given.program, folder)
        self.moments = random.Random(given.seed)
        self.lines = os.path.join(folder, "lines.jsonl")
        self.done = [line for line in lines_of(self.lines)]
        self.nodes, self.ranks_per_node = (int(word) for word in given.fleet.split("x"))
        self.layout = f"TP2 DP{self.nodes * self.ranks_per_node // 2}"

    def note(self, **line):
        self.done.append(line)
        with open(self.lines, "a") as file:
            file.write(json.dumps(line) + "\n")

    def times_done(self, row):
        return sum(line["row"] == row and "failure" not in line for line in self.done)

    def fleet(self, name, steps, failpoints="", spares=1):
        shutil.rmtree(self.runs.directory(name), ignore_errors=True)
        shutil.rmtree(self.runs.directory(name) + "-nodes", ignore_errors=True)
        # Of the faults of a place the first that is due strikes.
        pad = f"train.step=sleep={STEP_SECONDS}"
        overrides = [*MODELS["gpt"].split(), *overrides_of(self.layout), *SAVES]
        return Fleet(self.runs, name, self.given.fleet, spares, steps, overrides, ";".join(filter(None, [failpoints, pad])))

    def reference(self, steps):
        """Digests at the end of a run without supervisor, which nothing has disturbed."""
        name = f"reference-{steps}"
        checkpoint = self.runs.step(name, steps)
        if not os.path.exists(os.path.join(checkpoint, "manifest.json")):
            shutil.rmtree(self.runs.directory(name), ignore_errors=True)
            self.runs.train_well(name, self.layout, steps,
                                 [f"trainer.num_nodes={self.nodes}", f"trainer.devices={self.ranks_per_node}"])
        return self.runs.digests(checkpoint)

    def compare(self, fleet):
        different = names_of_difference(self.runs.digests(self.runs.step(fleet.name, fleet.steps)), self.reference(fleet.steps))
        if different:
            raise Failure(f"{len(different)} tensors are not those of an undisturbed run, {different[0]} first")

    # One fault in a fleet that trains.

    def strike(self, fleet, name):
        row = ROWS[name]
        fleet.wait_for_steps(self.moments.randint(2, STEPS_PER_FAULT - 2))
        time.sleep(self.moments.uniform(0.0, STEP_SECONDS))
        before, best, generation = time.monotonic(), fleet.best_step(), fleet.generation()
        struck = row.inject(fleet, self.moments)
        if row.restarts:
            fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(2)
        line = self.measure(fleet, before, best, generation)
        row.after(fleet, struck)
        print(f"{name}: {struck}, {line}", flush=True)
        self.note(row=name, struck=struck, **line)
        for problem in self.problems(row, line):
            raise Failure(f"{name} ({struck}): {problem}")
        if row.is_named and line["named"] != [struck]:
            raise Failure(f"{name}: {struck} was struck, and {line['named']} named")

    @staticmethod
    def measure(fleet, before, best, generation):
        """Steps that the old generation finished after the stamp, before the fault was felt, count as finished."""
        later = [fact for fact in fleet.journal() if fact["mono"] >= before]
        faults = [fact for fact in later if fact["kind"] == "fault"]
        claims = [fact["mono"] for fact in later if fact["kind"] == "claimed"]
        steps = fleet.steps_done()
        if claims:
            best = max(step for moment, step in steps if moment < claims[0])
        new = [moment for moment, step in steps if step > best and moment >= (claims[0] if claims else before)]
        return {"generations": fleet.generation() - generation,
                "symptoms": sorted({fact["symptom"] for fact in faults}),
                "named": sorted({f"rank {rank}" for fact in faults for rank in fact.get("ranks", "").split(",") if rank}),
                "noticed": round(faults[0]["mono"] - before, 2) if faults else None,
                "next_step": round(min(new) - before, 2) if new else None,
                "lost": best + 1 - max(0, fleet.roster()["from_step"]) if claims else 0}

    def problems(self, row, line):
        if row.restarts and line["generations"] < 1:
            yield "no generation followed"
        if not row.restarts and line["generations"] != 0:
            yield f"{line['generations']} generations followed, although nothing that computes was hurt"
        if row.symptoms and not set(row.symptoms) & set(line["symptoms"]):
            yield f"the journal names {line['symptoms']}, not {row.symptoms}"
        if line["lost"] > row.most_lost:
            yield f"{line['lost']} steps lost, at most {row.most_lost} are allowed"
        if self.given.fast or not row.restarts:
            return
        if line["noticed"] > row.noticed:
            yield f"noticed after {line['noticed']} s, not {row.noticed}"
        if line["next_step"] > row.done:
            yield f"next step after {line['next_step']} s, not {row.done}"

    def strike_in_turn(self, names):
        """One fleet takes all of them, one after the other."""
        times = 1 if self.given.fast else self.given.repeat
        due = [name for name in names for _ in range(max(0, times - self.times_done(name)))]
        if not due:
            return 0
        self.moments.shuffle(due)
        fleet = self.fleet("struck", (len(due) + 1) * (STEPS_PER_FAULT + 4))
        failed = 0
        try:
            fleet.start()
            for name in due:
                try:
                    self.strike(fleet, name)
                except Failure as failure:
                    failed += 1
                    self.note(row=name, failure=str(failure))
                    print(f"{name}: {failure}", flush=True)
                    if fleet.process.poll() is not None:
                        break
            code = fleet.wait()
            if code != 0:
                raise Failure(f"the supervisor ended with {code}\n{fleet.last_words()}")
            self.compare(fleet)
            print(f"{len(due)} faults in {fleet.steps} steps, generation {fleet.generation()}: the bits of an undisturbed run")
        except Failure as failure:
            failed += 1
            print(f"after {', '.join(due)}: {failure}", flush=True)
        finally:
            fleet.end()
        return failed

    # Rows with a fleet of their own.

    def fail_by_itself(self, name):
        text, symptoms = FAILPOINTS[name]
        fleet = self.fleet(name, 12, text.format(first=1))
        try:
            fleet.start()
            code = fleet.wait()
            found = {fact.get("symptom") for fact in fleet.journal() if fact["kind"] == "fault"}
            if code != 0 or fleet.generation() != 2 or not found & set(symptoms):
                raise Failure(f"exit code {code}, generation {fleet.generation()}, {found}\n{fleet.last_words()}")
            self.compare(fleet)
        finally:
            fleet.end()

    def stop(self, name):
        fleet = self.fleet(name, 1000)
        try:
            fleet.start()
            fleet.wait_for_steps(3)
            fleet.process.send_signal(signal.SIGTERM)
            if name == "stop-twice":
                time.sleep(0.1)
                fleet.process.send_signal(signal.SIGTERM)
            code = fleet.wait()
            if code != STOPPED:
                raise Failure(f"exit code {code}, not {STOPPED}\n{fleet.last_words()}")
            reached = fleet.best_step() + 1
            self.runs.verify(self.runs.step(name, reached))
            fleet.steps = reached + 4
            fleet.start()
            code = fleet.wait()
            if code != 0:
                raise Failure(f"exit code {code} when it was started again\n{fleet.last_words()}")
            self.compare(fleet)
        finally:
            fleet.end()

    def crash_always(self, name):
        fleet = self.fleet(name, 20, "train.step=abort@step=0,rank=1")
        try:
            fleet.start()
            code = fleet.wait()
            if code != GAVE_UP:
                raise Failure(f"exit code {code}, not {GAVE_UP}\n{fleet.last_words()}")
            if len(fleet.rosters()) > 5:
                raise Failure(f"{len(fleet.rosters())} starts, 5 are allowed")
            if "rank 1" not in fleet.last_words():
                raise Failure(f"rank 1 is not named\n{fleet.last_words()}")
        finally:
            fleet.end()

    def run_alone(self, name):
        if self.times_done(name):
            return 0
        try:
            if name in FAILPOINTS:
                self.fail_by_itself(name)
            elif name == "crash-always":
                self.crash_always(name)
            else:
                self.stop(name)
        except Failure as failure:
            self.note(row=name, failure=str(failure))
            print(f"{name}: {failure}", flush=True)
            return 1
        self.note(row=name)
        print(f"{name}: as it should", flush=True)
        return 0


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def print_table(lines):
    print("\n| row | times | noticed p50 / p95 / worst | next step p50 / p95 / worst | steps lost |", "|---" * 5 + "|", sep="\n")
    for name in ROWS:
        of_row = [line for line in lines if line["row"] == name and "failure" not in line]
        if not of_row:
            continue
        columns = []
        for key in ("noticed", "next_step"):
            values = [line[key] for line in of_row if line[key] is not None]
            columns.append(" / ".join(f"{value:.1f}" for value in (percentile(values, 0.5), percentile(values, 0.95), max(values)))
                           if values else "-")
        print(f"| {name} | {len(of_row)} | {columns[0]} | {columns[1]} | {max(line['lost'] for line in of_row)} |")


def run(given, names, folder):
    campaign = Campaign(given, folder)
    failed = campaign.strike_in_turn([name for name in names if name in ROWS])
    for name in names:
        if name in FAILPOINTS or name in ENDINGS:
            failed += campaign.run_alone(name)
    print_table(campaign.done)
    print(f"\n{failed} failures")
    return 1 if failed else 0
