"""Small trainings with the built program, and what they leave."""

import json
import os
import subprocess

from layout_words import overrides_of, ranks_of

RECIPE = """
trainer: {accelerator: cpu, cpu_threads: 1, gradient_clip_val: 1.0, communication_timeout: 60}
exp_manager: {create_tensorboard_logger: false, resume_if_exists: true}
model:
  global_batch_size: 8
  encoder_seq_length: 16
  num_layers: 8
  hidden_size: 32
  num_attention_heads: 8
  data: {data_impl: mock}
  optim: {lr: 1.0e-3, sched: {name: CosineAnnealing, warmup_steps: 3, max_steps: 1000, min_lr: 1.0e-4}}
"""

MODELS = {
    "gpt": "model.hidden_dropout=0.1 model.attention_dropout=0.1",
    "llama": "model.num_query_groups=2 model.ffn_hidden_size=96 model.position_embedding_type=rope model.normalization=rmsnorm "
             "model.activation=swiglu model.bias=false model.share_embeddings_and_output_weights=false",
}
FP8 = (" model.fp8=true model.fp8_hybrid=true model.fp8_amax_history_len=4 model.hidden_size=128 model.ffn_hidden_size=256 "
       "trainer.gradient_clip_val=0")
MODELS |= {f"{model} fp8": words + FP8 for model, words in MODELS.items()}

CALLBACK = "exp_manager.checkpoint_callback_params."


class Failure(Exception):
    """What was to be shown is not so."""


class Runs:
    """Runs in one folder, each under a name."""

    def __init__(self, program, folder):
        self.program = os.path.abspath(program)
        self.folder = folder
        self.memory = None  # a directory in memory, where runs may keep copies of their state
        self.recipe = os.path.join(folder, "recipe.yaml")
        with open(self.recipe, "w") as file:
            file.write(RECIPE)

    def directory(self, name):
        return os.path.join(self.folder, name)

    def step(self, name, step):
        return os.path.join(self.directory(name), "checkpoints", f"step-{step:08}")

    def command(self, name, layout, steps, overrides, model="gpt"):
        ranks = ranks_of(layout)
        memory = self.memory or "none"
        return [self.program, "train", "-c", self.recipe, f"trainer.max_steps={steps}",
                f"exp_manager.explicit_log_dir={self.directory(name)}", f"{CALLBACK}memory_dirpath={memory}",
                *MODELS[model].split(), *overrides_of(layout), *overrides, *(["--nproc", str(ranks)] if ranks > 1 else [])]

    def train(self, name, layout, steps, overrides=(), model="gpt"):
        """Its exit code and what it says."""
        done = subprocess.run(self.command(name, layout, steps, overrides, model), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def train_well(self, name, layout, steps, overrides=(), model="gpt"):
        code, output = self.train(name, layout, steps, overrides, model)
        if code != 0:
            raise Failure(f"exit code {code}: {' '.join(self.command(name, layout, steps, overrides, model))}\n{output[-2000:]}")

    def ask(self, *arguments):
        return subprocess.run([self.program, "checkpoint", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def verify(self, path):
        done = self.ask("verify", path)
        if done.returncode != 0:
            raise Failure(f"checkpoint verify: exit code {done.returncode}: {done.stdout}")

    def digests(self, path):
        """{"exp_avg layers.0.mlp.up.weight": "9f...", ...}"""
        done = self.ask("inspect", "--digests", path)
        if done.returncode != 0:
            raise Failure(f"checkpoint inspect: exit code {done.returncode}: {done.stdout}")
        lines = done.stdout.split("digests (xxh3)\n")[1].splitlines()
        return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}

    def events(self, name):
        """Of all starts of a run. A killed one may leave half a line."""
        events = []
        path = os.path.join(self.directory(name), "events.jsonl")
        if os.path.exists(path):
            with open(path, errors="replace") as file:
                for line in file:
                    try:
                        events.append(json.loads(line))
                    except json.JSONDecodeError:
                        continue
        return events

    def losses(self, name):
        """By step."""
        return {event["step"]: event["fields"]["reduced_train_loss"] for event in self.events(name) if event["event"] == "metrics"}


def names_of_difference(digests, expected):
    return sorted(name for name in digests.keys() | expected.keys() if digests.get(name) != expected.get(name))
