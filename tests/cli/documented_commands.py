#!/usr/bin/env python3
"""Runs the commands of README.md, docs/*.md and every --help, as they are printed.

  tests/cli/documented_commands.py build/cpu/megalith [WORD ...]      only those of sources that hold a WORD

Every page, and the help of every verb, gets a folder of its own with the demo's recipes, data and tokenizer, where its commands
run in their order; the files that they name are made from what they look like. A command has one of these classes, by its
pattern, and one that has none is a failure:

  run      as it is printed, but small: train gets trainer.max_steps=2, benches get few rounds, watch gets --once
  dry-run  train for a GPU, many ranks or a large model gets --dry-run
  parse    what needs a network, a GPU, a cluster or a folder of one: verb, options, keys and recipes must exist
  other    other programs; files of the repository that they name must exist

What a sentence mentions in `backquotes` is parsed.
"""
import base64
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
OTHER_PROGRAMS = "cmake ctest curl echo eval export mail openssl pip python3 sbatch scancel kubectl helm docker tensorboard".split()
LAUNCHERS = ("srun", "torchrun", "mpirun")
SMALL_MODEL = ("trainer.accelerator=cpu trainer.precision=32 trainer.limit_val_batches=1 model.num_layers=2 model.hidden_size=32 "
               "model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 model.micro_batch_size=1 "
               "model.global_batch_size=2").split()
RUNS_ON_A_CPU = ("demo", "gpt3-125m")


class Wrong(Exception):
    pass


def megalith(arguments, folder, typed=""):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, input=typed, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
    return done.returncode, done.stdout


# Where commands are printed.

def join_continued(lines):
    joined = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1][:-1] + line.strip()
        else:
            joined.append(line.rstrip())
    return joined


def is_program(word):
    return (word in OTHER_PROGRAMS or word in LAUNCHERS or word == "megalith" or re.fullmatch(r"build/\w+/megalith", word)
            or re.match(r"(\./)?scripts/", word) or re.search("/bin/(python|pip)3?$", word))


def commands_of_block(language, lines):
    """(command, refused): what a fenced block shows being typed, and whether it shows a refusal as the answer."""
    lines = [line for line in join_continued(lines) if line.strip()]
    prompts = any(line.startswith("$ ") for line in lines)
    for at, line in enumerate(lines):
        if prompts:
            refused = at + 1 < len(lines) and lines[at + 1].startswith("megalith: ")
            if line.startswith("$ "):
                yield line[2:], refused
            continue
        first = line.split()[0]
        if line.startswith("#"):
            continue
        if is_program(first):
            yield line, False
        elif language in ("bash", "sh", "console") or (is_program(lines[0].split()[0]) and re.match(r"[a-z./]", line)):
            raise Wrong(f"neither a known program nor its output: {line}")


def commands_of_page(text):
    for fence in re.finditer(r"^ *```(\w*)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        yield from commands_of_block(fence[1], fence[2].splitlines())


def mentions_of_page(text):
    """Commands in the middle of a sentence, often only the part that matters there."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`(megalith [^`]+)`", text)]


def commands_of_help(text):
    description = text.split("\nUsage:")[0]
    examples = [line for line in description.splitlines() if line.startswith("  ")]
    return [(line.strip(), False) for line in join_continued(examples) if is_program(line.split()[0])]


def verbs_below(path):
    _, text = megalith([*path, "--help"], REPOSITORY)
    names = re.findall(r"^  ([a-z][a-z-]*)  ", text.split("\nVerbs:\n")[1], re.MULTILINE) if "\nVerbs:\n" in text else []
    yield path, text
    for name in names:
        yield from verbs_below([*path, name])


# The folder that a page's commands find.

def words(count):
    """Text with enough different pairs of letters for a tokenizer of 1024 ids; the same every time."""
    state = 1
    for i in range(count):
        word = ""
        for _ in range(2 + i % 4):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            word += "bcdfghklmnprstvw"[state >> 60] + "aeiou"[(state >> 50) % 5]
        yield word


def documents():
    text = list(words(6000))
    return [" ".join(text[at:at + 12]) for at in range(0, len(text), 12)]


def zstd_frame(content):
    """One frame of stored blocks: what every zstd reader takes, without a compressor."""
    blocks = [content[at:at + 100000] for at in range(0, len(content), 100000)]
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little")
    for block in blocks:
        frame += (len(block) << 3 | (block is blocks[-1])).to_bytes(3, "little") + block
    return frame


def write_input(path, texts):
    names = ("RedPajamaC4", "RedPajamaWikipedia", "RedPajamaCommonCrawl")
    text = "\n\n".join(texts) + "\n"
    lines = "".join(json.dumps({"text": text, "meta": {"redpajama_set_name": names[i % 3]}}) + "\n"
                    for i, text in enumerate(texts))
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (lines if ".jsonl" in path.name else text).encode()
    path.write_bytes(zstd_frame(content) if path.suffix == ".zst" else content)


def make_demo(folder):
    """The demo's data and a run, as scripts/demo makes them, but small."""
    (folder / "recipes").symlink_to(REPOSITORY / "recipes")
    write_input(folder / "data/demo.txt", documents())
    demo = join_continued((REPOSITORY / "scripts/demo").read_text().splitlines())
    for line in [line for line in demo if line.startswith('"$megalith" data ')]:
        expect(0, shlex.split(line)[1:], folder)
    expect(0, ["train", "-c", "recipes/demo.yaml", "model.data.data_prefix=[data/demo-bpe_text_document]", *SMALL_MODEL,
               "trainer.max_steps=12", "trainer.log_every_n_steps=1", "model.encoder_seq_length=64", "model.data.splits_string=90,5,5"], folder)


def make_dllogger(path):
    lines = [{"step": step, "type": "LOG", "data": {"train_step_timing in s": 25.4}} for step in range(50)]
    path.write_text("".join(f"DLLL {json.dumps(line)}\n" for line in lines))


def make_goodput_log(path, job):
    """As Google's resiliency library writes it: one hour, two saves."""
    events = [("job_started", 0, 0), ("checkpoint_saved", 30, 100), ("checkpoint_saved", 59, 200)]
    path.write_text("".join(json.dumps({"event_type": event, "job_name": job, "step": step,
                                        "timestamp": f"2025-04-02T06:{minute:02}:00.000000"}) + "\n"
                            for event, minute, step in events))


def make_rank_file(path):
    path.write_bytes(b"".join(base64.b64encode(bytes([i])) + f" {i}\n".encode() for i in range(256)))


class Folder:
    """Makes what a command names, if an earlier one did not."""

    def __init__(self, path, demo):
        self.path = path
        shutil.copytree(demo, path, symlinks=True)

    def remove_outputs(self, arguments):
        """The next example of a help may write to the same place as the one before."""
        for option, name in zip(arguments, arguments[1:]):
            if option in ("--output", "--output-prefix", "--output-dir"):
                for path in list(self.path.glob(name + "*")):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def provide(self, arguments):
        option = ""
        for paths in re.findall(r"data_prefix=\[([^\]]*)\]", " ".join(arguments)):
            arguments = [*arguments, *re.findall(r"[\w./*-]*_document", paths)]
        for argument in arguments:
            if argument.startswith("-"):
                option = argument
            elif not self.exists(argument):
                self.make(option, argument, arguments)

    def exists(self, argument):
        if not re.match(r"[\w.][\w./*\[\]-]*$", argument) or not argument.strip("."):
            return True
        return any(self.path.glob(argument)) or any(self.path.glob(argument + ".bin"))

    def make(self, option, argument, arguments):
        path = self.path / argument
        if run := re.match(r"runs/[\w-]+", argument):
            if not (self.path / run[0]).exists():
                shutil.copytree(self.path / "runs/demo", self.path / run[0])
        elif option == "--vocab-file" or option == "--merge-file":
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.path / f"data/demo-tokenizer/{'vocab.json' if option == '--vocab-file' else 'merges.txt'}", path)
        elif argument.endswith(".tiktoken"):
            make_rank_file(path)
        elif argument.endswith("_document") and "/" in argument:
            for suffix in (".bin", ".idx", ".json"):
                shutil.copy(self.path / f"data/demo-bpe_text_document{suffix}", f"{path}{suffix}".replace("*", "0"))
        elif "prompt" in option:
            path.write_text("".join(f"{word}\n" for word in words(3)))
        elif option in ("--input", "--text") or argument.endswith((".jsonl", ".txt")):
            files = 32 if "*" in argument else 4 if "[0-3]" in argument else 1
            for i in range(files):
                write_input(self.path / re.sub(r"\*|\[.*?\]", str(i), argument), documents()[i::files])
        elif "dllogger" in argument:
            make_dllogger(path)
        elif argument.endswith("-goodput.log"):
            make_goodput_log(path, arguments[arguments.index("--job-name") + 1])
        elif arguments[:3] == ["checkpoint", "convert", argument] and "megalith" in arguments:
            expect(0, ["checkpoint", "convert", "runs/demo", "--to", "hugging-face", "--output", argument], self.path)


# What becomes of a command.

def expect(code, arguments, folder, typed=""):
    got, output = megalith(arguments, folder, typed)
    if got != code:
        raise Wrong(f"exit code {got} where {code} was expected of: megalith {shlex.join(arguments)}\n{output}")
    return output


def with_value(arguments, option, value):
    """`option` with this value, whether it was given or not."""
    if option not in arguments:
        return [*arguments, option, value]
    at = arguments.index(option)
    return [*arguments[:at + 1], value, *arguments[at + 2:]]


def small(arguments):
    verb = arguments[:2]
    if verb[0] == "watch":
        return arguments if "--once" in arguments else [*arguments, "--once"]
    if verb == ["bench", "step"]:
        return [*with_value(with_value(arguments, "--steps", "1"), "--warm-up", "1"), *SMALL_MODEL]
    if verb == ["bench", "comm"]:
        few = with_value(with_value(arguments, "--nproc", "2"), "--most-bytes", "64")
        return with_value(with_value(few, "--seconds", "0.01"), "--accelerator", "cpu")
    if verb == ["bench", "data"]:
        return with_value(with_value(arguments, "--datasets", "2"), "--tokens", "100000")
    if verb == ["data", "decode"]:  # the ids are GPT-2's, the tokenizer is the demo's
        return [*arguments[:-1], " ".join(str(int(number) % 1000) for number in arguments[-1].split())]
    if verb[0] == "supervise" and "--local" in arguments:
        return [*with_value(with_value(arguments, "--local", "1x2"), "--spares", "0"), *SMALL_MODEL, "trainer.max_steps=2"]
    if verb == ["data", "check"] and "--min-megabytes" in arguments:
        return with_value(arguments, "--min-megabytes", "0")
    return arguments


def class_of(arguments, program, launched):
    if "--help" in arguments or "--help-config" in arguments:
        return "run"
    if arguments[0] == "train":
        recipes = [pathlib.Path(word).stem for word in arguments if word.endswith(".yaml")]
        at_home = all(recipe in RUNS_ON_A_CPU for recipe in recipes)
        listens = any("port=" in word for word in arguments)
        alone = not launched and "cuda" not in program and "--nproc" not in arguments
        return "run" if "--dry-run" in arguments or (at_home and alone and not listens) else "dry-run"
    if arguments[0] == "monitor" or "--listen" in arguments:  # they wait for each other
        return "parse"
    if arguments[0] == "launch":  # else it would submit, or ask a cluster
        return "run" if {"--render", "--rbac", "profile"} & set(arguments) else "parse"
    elsewhere = any(re.search(r"(^|=)/|://", word) for word in arguments)
    downloads = arguments[:2] == ["data", "download"]
    if elsewhere or downloads or "cuda" in program or "--as-rank" in arguments or (launched and arguments[0] == "bench"):
        return "parse"
    return "run"


class Parser:
    """What `--help` and `--help-config` know."""

    def __init__(self):
        self.helps = {tuple(path): text for path, text in verbs_below([])}
        self.keys = set(re.findall(r"^ *([a-z_]+(?:\.[a-z_0-9]+)+)", expect(0, ["train", "--help-config"], REPOSITORY), re.MULTILINE))

    def check(self, arguments):
        if arguments[0] == "launch":
            at = [i for i, word in enumerate(arguments) if word == "--"]
            for begin, end in zip(at, [*at[1:], len(arguments)]):
                self.check(arguments[begin + 1:end])
            arguments = [word for word in arguments[:(at or [len(arguments)])[0]] if "=" not in word]  # those are the profile's
        verb = tuple(arguments[:2]) if tuple(arguments[:2]) in self.helps else tuple(arguments[:1])
        if verb not in self.helps:
            raise Wrong(f"there is no verb {arguments[0]}")
        for word in arguments:
            option = word.split("=")[0]
            if option.startswith("-") and not re.search(rf"[ ,]{option}[ ,\n]", self.helps[verb]):
                raise Wrong(f"{' '.join(verb)} has no option {option}")
            if verb[0] != "data" and re.match(r"[a-z_]+\.[a-z_.]+=", word) and option not in self.keys:
                raise Wrong(f"there is no key {option}")
            if word.startswith("recipes/") and not (REPOSITORY / word).exists():
                raise Wrong(f"there is no {word}")


def run_megalith(arguments, program, launched, refused, typed, folder, parser):
    what = class_of(arguments, program, launched)
    # The demo's run has one checkpoint.
    arguments = [re.sub(r"step-\d+", "step-00000012", word) for word in arguments]
    if what == "parse":
        parser.check(arguments)
        return what
    if what == "dry-run":
        arguments.append("--dry-run")
    elif arguments[0] == "train" and "--dry-run" not in arguments and "--help-config" not in arguments:
        arguments += ["trainer.max_steps=2"]
        # The demo has a size for any machine, and this folder has a run of another one.
        arguments += ["exp_manager.explicit_log_dir=runs/trained"] if "recipes/demo.yaml" in arguments else SMALL_MODEL
    folder.remove_outputs(arguments)
    folder.provide(arguments)
    expect(2 if refused else 0, small(arguments), folder.path, typed)
    return what


def run_command(line, refused, folder, parser):
    """The classes of the programs in a line."""
    classes = []
    piped = ""
    for command in re.split(r" \| | && ", line):
        typed = shlex.split(command, comments=True)
        typed = [word for word in typed if not re.fullmatch(r"\w+=\S*", word)] if "=" in typed[0] else typed
        if not typed or not is_program(typed[0]):
            raise Wrong(f"unknown program: {command}")
        program, launched = typed[0], typed[0] in LAUNCHERS
        if launched:
            at = next((i for i, word in enumerate(typed) if word.endswith("megalith")), None)
            if at is None:
                classes.append("other")
                continue
            program, typed = typed[at], typed[at:]
        if not program.endswith("megalith"):
            for word in typed:
                if word.lstrip("./").startswith("scripts/") and not (REPOSITORY / word).exists():
                    raise Wrong(f"there is no {word}")
            piped = " ".join(typed[1:]) + "\n" if program == "echo" else ""
            classes.append("other")
            continue
        arguments = typed[1:typed.index(">")] if ">" in typed else typed[1:]
        classes.append(run_megalith(arguments, program, launched, refused, piped, folder, parser))
    return classes


def run_source(name, commands, folder, parser):
    report, problems = [], []
    for line, refused in commands:
        try:
            report.append((name, "+".join(run_command(line, refused, folder, parser)), line))
        except (Wrong, subprocess.TimeoutExpired, OSError, LookupError, ValueError) as wrong:
            problems.append(f"{name}: {line}\n  {wrong!r}" if not isinstance(wrong, Wrong) else f"{name}: {line}\n  {wrong}")
    shutil.rmtree(folder.path)
    return report, problems


def main():
    parser = Parser()
    sources = {}
    problems = []
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        try:
            sources[str(page.relative_to(REPOSITORY))] = list(commands_of_page(page.read_text()))
        except Wrong as wrong:
            problems.append(f"{page.name}: {wrong}")
        for mention in mentions_of_page(page.read_text()):
            try:
                parser.check(mention.split()[1:])
            except Wrong as wrong:
                problems.append(f"{page.name} mentions {mention}: {wrong}")
    for verb, text in parser.helps.items():
        sources[" ".join(["megalith", *verb, "--help"])] = commands_of_help(text)
    wanted = sys.argv[2:]
    sources = {name: found for name, found in sources.items() if found and (not wanted or any(word in name for word in wanted))}
    report = []
    with tempfile.TemporaryDirectory(prefix="documented-") as temporary:
        demo = pathlib.Path(temporary) / "demo"
        demo.mkdir()
        make_demo(demo)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(run_source, name, commands, Folder(pathlib.Path(temporary) / str(i), demo), parser)
                    for i, (name, commands) in enumerate(sources.items())]
            for job in jobs:
                report += job.result()[0]
                problems += job.result()[1]
    for name, classes, line in report:
        print(f"{classes:<10} {name:<34} {line}")
    for problem in problems:
        print(f"\nwrong: {problem}", file=sys.stderr)
    print(f"\n{len(report)} commands hold, {len(problems)} do not")
    return 1 if problems or not report else 0


if __name__ == "__main__":
    sys.exit(main())
