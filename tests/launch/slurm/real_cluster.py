"""A real Slurm cluster (scripts/slurm-local), this program on it, and what its drills expect."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
SMALL_GPT = ("-c {recipe} trainer.accelerator=cpu trainer.cpu_threads=1 trainer.limit_val_batches=0 trainer.enable_progress_bar=false "
             "model.num_layers=2 model.hidden_size=32 model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 "
             "model.global_batch_size=8 model.tensor_model_parallel_size=2 trainer.max_steps={steps} "
             "exp_manager.checkpoint_callback_params.every_n_train_steps=5").format
# Nodes without GPUs that share this machine's two cores.
PROFILE = "--set gpus_per_node=0 --set slurm.wait=30 --set save_margin=60".split()


class Wrong(Exception):
    pass


class Cluster:
    def __init__(self, folder, accounting):
        self.folder = folder
        self.accounting = accounting
        self.environment = {**os.environ, "SLURM_LOCAL_DIR": str(folder / "cluster"), "XDG_STATE_HOME": str(folder / "state"),
                            "SLURM_LOCAL_MIN_JOB_AGE": "30"}

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
            raise Wrong(f"exit code {got} where {code} was expected of: megalith {' '.join(words)[:1000]}\n{output[-4000:]}")
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
            if re.search("^state     ended", status, re.MULTILINE):
                break
            time.sleep(0.5)
        logs = self.megalith("launch", "logs", name)
        raise Wrong(f"{name}: no '{pattern}' in\n{status}\n{logs[-4000:]}")

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


def starts(status):
    return len(re.findall(r", start \d+ on ", status))
