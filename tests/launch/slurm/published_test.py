#!/usr/bin/env python3
"""The launches that docs/launch.md names for published recipes, submitted in their order to a stand-in for Slurm's commands: options and
scripts must be those of tests/launch/golden/published/.

  tests/launch/slurm/published_test.py build/cpu/megalith [--update]       --update writes them anew, for a person to read the difference
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
GOLDEN = REPOSITORY / "tests/launch/golden/published"
# Jobs wait for ever, so that --after finds the launch before; what is submitted goes to a file.
STAND_INS = {"sbatch": 'echo "# sbatch $*" >>submitted; n=$(wc -l <submitted); echo $((n + 100))', "squeue": "echo 'PENDING|Priority|N/A|'",
             "scontrol": "echo 'MaxArraySize = 1001'", "scancel": "exit 1"}


def commands():
    section = (REPOSITORY / "docs/launch.md").read_text().split("## Published recipes on Slurm")[1].split("\n## ")[0]
    return [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def write_gpt2_files(folder):
    """A vocabulary of GPT-2's size: the bytes, 50,000 pairs of them, <|endoftext|>."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    pairs = [(a, b) for a in letters for b in letters][:50000]
    words = [*letters, *(a + b for a, b in pairs), "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))


class Lustre:
    """A folder that stands for /lustre, with what the commands expect there."""

    def __init__(self, folder):
        self.path = folder / "lustre"
        for name in ("bpe", "gpt3-dataset", "home"):
            (self.path / name).mkdir(parents=True)
        write_gpt2_files(self.path / "bpe")
        for i in range(4):
            for kind in ("bin", "idx"):
                (self.path / f"gpt3-dataset/my-gpt3_0{i}_text_document.{kind}").touch()
        (self.path / "home/recipes").symlink_to(REPOSITORY / "recipes")
        self.home = self.path / "home"

    def here(self, text):
        return text.replace("/lustre", str(self.path))

    def there(self, text):
        return text.replace(PROGRAM, "/lustre/home/bin/megalith").replace(str(self.path), "/lustre")


def launch(command, lustre, tools):
    words = shlex.split(lustre.here(command))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_"))}
    environment |= {"PATH": f"{tools}:{os.environ['PATH']}", "XDG_STATE_HOME": str(lustre.path / "state")}
    done = subprocess.run([PROGRAM, *words[1:]], cwd=lustre.home, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode} of {command}\n{done.stdout}")
    name = re.search(r"launched (\S+) on", done.stdout)[1]
    script = pathlib.Path(re.search(r"folder  (\S+)", done.stdout)[1]) / "job.sh"
    subprocess.run(["bash", "-n", str(script)], check=True, timeout=20)
    submitted = (lustre.home / "submitted").read_text()
    (lustre.home / "submitted").unlink()
    return name, lustre.there(submitted + script.read_text())


def main():
    different = 0
    with tempfile.TemporaryDirectory(prefix="published-") as folder:
        folder = pathlib.Path(folder).resolve()
        lustre = Lustre(folder)
        tools = folder / "tools"
        tools.mkdir()
        for name, text in STAND_INS.items():
            (tools / name).write_text(f"#!/bin/bash\n{text}\n")
            (tools / name).chmod(0o755)
        names = []
        for command in commands():
            name, text = launch(command, lustre, tools)
            names.append(f"{name}.sh")
            golden = GOLDEN / names[-1]
            if "--update" in sys.argv:
                golden.parent.mkdir(exist_ok=True)
                golden.write_text(text)
            if not golden.exists() or golden.read_text() != text:
                different += 1
                print(f"FAIL  {name}: differs from {golden}")
                subprocess.run(["diff", "-u", str(golden), "-"], input=text, text=True, timeout=20)
            else:
                print(f"ok    {name}")
        for golden in GOLDEN.glob("*.sh"):
            if golden.name not in names:
                different += 1
                print(f"FAIL  {golden} is of no command in docs/launch.md")
    return 1 if different or not names else 0


if __name__ == "__main__":
    sys.exit(main())
