#!/usr/bin/env python3
"""Launches on a real Slurm cluster (scripts/slurm-local), where one can be made; exit code 77 and a sentence where not.

  tests/launch/slurm/slurm_test.py build/cpu/megalith [DRILL ...]        without names, every drill

Each drill is a function below; every command has a time limit.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
SKIPPED = 77
SMALL_GPT = ("-c {recipe} trainer.accelerator=cpu trainer.cpu_threads=1 trainer.limit_val_batches=0 trainer.enable_progress_bar=false "
             "model.num_layers=2 model.hidden_size=32 model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 "
             "model.global_batch_size=8 model.tensor_model_parallel_size=2 trainer.max_steps={steps} "
             "exp_manager.checkpoint_callback_params.every_n_train_steps=5").format
# Nodes without GPUs that share this machine's two cores.
PROFILE = "--set gpus_per_node=0 --set slurm.wait=30 --set save_margin=60".split()


class Wrong(Exception):
    pass


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "SLURM_LOCAL_DIR": str(folder / "cluster"), "XDG_STATE_HOME": str(folder / "state")}

    def run(self, *words, seconds=60):
        done = subprocess.run([str(REPOSITORY / "scripts/slurm-local"), *words], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, errors="replace")
        return done.returncode, done.stdout

    def need(self, *words, seconds=60):
        code, output = self.run(*words, seconds=seconds)
        if code != 0:
            raise Wrong(f"slurm-local {' '.join(words)}: exit code {code}\n{output}")
        return output

    def megalith(self, *words, code=0, seconds=120):
        """This program on the login host: what it printed."""
        got, output = self.run("exec", PROGRAM, *words, seconds=seconds)
        if got != code:
            raise Wrong(f"exit code {got} where {code} was expected of: megalith {' '.join(words)}\n{output}")
        return output

    def launch(self, name, steps, *options, code=0, more=()):
        """A small GPT on 2 nodes x 2 ranks, under this name."""
        return self.megalith("launch", "slurm", "--nodes", "2", *PROFILE, *options, "--name", name, "--",
                             *self.training(name, steps), "--nproc", "2", *more, code=code)

    def training(self, name, steps):
        return ["train", *SMALL_GPT(recipe=REPOSITORY / "recipes/gpt3-125m.yaml", steps=steps).split(),
                f"exp_manager.explicit_log_dir={self.folder / name}"]

    def wait_for(self, name, pattern, seconds=180):
        """Until `launch status` says so."""
        until = time.monotonic() + seconds
        status = ""
        while time.monotonic() < until:
            status = self.megalith("launch", "status", name)
            if re.search(pattern, status):
                return status
            time.sleep(0.5)
        log = self.folder / name / "launch" / name / "log.txt"
        raise Wrong(f"{name}: no '{pattern}' within {seconds} s in\n{status}\n{log.read_text(errors='replace')[-4000:] if log.exists() else 'no log'}")

    def losses(self, name):
        """What each step logged last, by step."""
        found = {}
        for line in (self.folder / name / "dllogger/rank-0/dllogger.json").read_text().splitlines():
            record = json.loads(line.removeprefix("DLLL "))
            data = record.get("data", {})
            if isinstance(record.get("step"), int) and "reduced_train_loss" in data:
                found[record["step"]] = (data["reduced_train_loss"], data.get("grad_norm"))
        return found


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def expect_undisturbed(cluster, name, steps):
    """The losses of a run of 4 ranks on one machine, bit for bit."""
    reference = f"alone-{steps}"
    if not (cluster.folder / reference).exists():
        cluster.megalith(*cluster.training(reference, steps), "--nproc", "4", seconds=300)
    wanted, got = cluster.losses(reference), cluster.losses(name)
    expect(len(wanted) == steps, f"{reference} logged {len(wanted)} steps")
    expect(got == wanted, f"{name} differs from {reference}: {got} where {wanted} was expected")


def drill_complete(cluster):
    """Submitted, followed, complete: the same bits as --nproc 4."""
    answer = cluster.launch("first", 20, "--check")
    expect("to start at" in answer, f"--check: {answer}")
    expect(not (cluster.folder / "first").exists(), "--check left something behind")
    expect("launched first on generic-slurm: job" in cluster.launch("first", 20), "not launched")
    refused = cluster.launch("first", 20, code=2)
    expect("first is" in refused and "launch stop first" in refused, refused)
    status = cluster.wait_for("first", "state     ended: complete")
    expect("step      20 of 20, loss" in status and "saved     step 20" in status, status)
    expect("start 1 on n[1-2]" in status and "end 1, exit code 0: complete" in status, status)
    expect("[3] " in cluster.megalith("launch", "logs", "first") or "[0] " in cluster.megalith("launch", "logs", "first"), "no log")
    expect("first" in cluster.megalith("launch", "list"), "not listed")
    expect_undisturbed(cluster, "first", 20)
    expect("nothing to launch" in cluster.launch("first", 20), "a complete run was launched again")
    cluster.megalith("launch", "remove", "first")
    expect("there are no launches" in cluster.megalith("launch", "list"), "not removed")


def starts(status):
    return len(re.findall(r", start \d+ on ", status))


def drill_stop(cluster):
    """Stopped on request: saved, ended with 75, not started again."""
    cluster.launch("stopped", 100000)
    cluster.wait_for("stopped", "step      .*loss")
    cluster.megalith("launch", "stop", "stopped")
    status = cluster.wait_for("stopped", r"state     ended: stopped on request \(exit code 75\)")
    expect(re.search("saved     step [1-9]", status) and starts(status) == 1, status)


def drill_signal(cluster):
    """USR1, as Slurm sends it before the time limit: saved, requeued, complete, the same bits."""
    cluster.launch("signalled", 30, more=["resilience.failpoints=[train.step=delay]"])
    status = cluster.wait_for("signalled", "step      .*loss")
    job = re.search(r"running, job (\d+)", status)
    expect(job, f"it does not run: {status}")
    cluster.need("exec", "scancel", "--signal=USR1", job[1])
    status = cluster.wait_for("signalled", "state     ended: complete")
    expect(starts(status) == 2 and "exit code 75: stopped early, step" in status, status)
    expect_undisturbed(cluster, "signalled", 30)


def drill_crash(cluster):
    """Ranks that crash after progress: it goes on to its end, the same bits."""
    cluster.launch("crashing", 15, more=["resilience.failpoints=[train.step=exit@8]"])
    status = cluster.wait_for("crashing", "state     ended: complete")
    expect(starts(status) == 3 and "failed, step 5 saved" in status, status)
    expect_undisturbed(cluster, "crashing", 15)


def drill_crash_at_once(cluster):
    """Ranks that crash without progress: ended after one try."""
    cluster.launch("hopeless", 15, more=["resilience.failpoints=[train.step=exit@2]"])
    status = cluster.wait_for("hopeless", "state     ended: failed without a newer checkpoint")
    expect(starts(status) == 1, status)


def drill_bad_input(cluster):
    """A recipe that is gone when the job starts: exit code 2, never requeued."""
    cluster.launch("wrong", 15, "--set", "slurm.sbatch[0]=--begin=now+8")
    expect("waiting, job" in cluster.megalith("launch", "status", "wrong"), "it does not wait")
    (cluster.folder / "wrong/launch/wrong/gpt3-125m.yaml").unlink()
    status = cluster.wait_for("wrong", r"state     ended: the input is wrong, the log says what \(exit code 2\)")
    expect(starts(status) == 1, status)
    expect("gpt3-125m.yaml" in cluster.megalith("launch", "logs", "wrong"), "the log does not say what")


def drill_chain(cluster):
    """--chain 3: each job goes on where the one before crashed, the same bits."""
    answer = cluster.launch("chained", 15, "--chain", "3", more=["resilience.failpoints=[train.step=exit@8]"])
    expect(re.search(r"job \d+, \d+, \d+", answer), answer)
    status = cluster.wait_for("chained", "state     ended: complete")
    expect(starts(status) == 3 and len(set(re.findall(r"job (\d+), start", status))) == 3, status)
    expect_undisturbed(cluster, "chained", 15)


def drill_controller(cluster):
    """slurmctld gone while we ask: status says so and knows the run; then it ends as if nothing had been."""
    cluster.launch("alone", 30, more=["resilience.failpoints=[train.step=delay]"])
    cluster.wait_for("alone", "step      .*loss")
    cluster.need("controller", "stop")
    status = cluster.megalith("launch", "status", "alone")
    expect("unknown: squeue does not answer" in status and "loss" in status, status)
    cluster.need("controller", "start")
    cluster.wait_for("alone", "state     ended: complete")
    expect_undisturbed(cluster, "alone", 30)


def main():
    drills = {name[len("drill_"):]: drill for name, drill in globals().items() if name.startswith("drill_")}
    wanted = sys.argv[2:] or list(drills)
    with tempfile.TemporaryDirectory(prefix="slurm-test-") as folder:
        cluster = Cluster(pathlib.Path(folder))
        lacks = cluster.need("missing")
        if lacks:
            print(f"skipped, since a Slurm cluster cannot be made here: {lacks.strip()}")
            return SKIPPED
        failures = 0
        try:
            cluster.need("start", "--nodes", "4", seconds=240)
            for name in wanted:
                begin = time.monotonic()
                try:
                    drills[name](cluster)
                    print(f"ok    {name}: {drills[name].__doc__} ({time.monotonic() - begin:.0f} s)", flush=True)
                except (Wrong, subprocess.TimeoutExpired) as wrong:
                    failures += 1
                    print(f"FAIL  {name}: {wrong}", flush=True)
        finally:
            cluster.run("stop", seconds=120)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
