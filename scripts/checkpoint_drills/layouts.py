"""Saved in layout A, loaded in layout B."""

from layout_words import ranks_of

from .runs import CALLBACK, Failure, Runs, names_of_difference

AT = 5  # steps: where B takes over
STEPS = 15
TOLERANCE = 1e-4  # of a loss, relative
TOLERANCE_OF_FP8 = 3e-3  # of so few tokens; what a save keeps is compared to the bit

FAST = [
    ("gpt", "TP2 SP DP2 sharded-optimizer", "PP2"),
    ("llama", "PP2 VP2", "CP2 DP2 sharded-weights"),
    ("gpt", "TP2 SP DP2 sharded-optimizer", "TP2 SP DP2 sharded-optimizer"),
    ("gpt fp8", "TP2 SP DP2 sharded-optimizer", "PP4"),
]

PAIRS = FAST + [
    ("gpt", "", "TP4 SP"),
    ("gpt", "", "DP8 sharded-optimizer"),
    ("gpt", "TP4 SP", ""),
    ("gpt", "TP4 SP", "TP2 PP2 VP2 CP2"),
    ("gpt", "DP8 sharded-optimizer", "PP3 DP2 count-loss sharded-optimizer"),
    ("gpt", "DP8 sharded-optimizer", "TP8"),
    ("gpt", "DP4 sharded-weights", "PP4 zero-bubble"),
    ("gpt", "PP4 zero-bubble", "DP4 sharded-weights"),
    ("gpt", "PP3 first-stage 2", "TP2 DP2"),
    ("gpt", "TP2 SP PP2 DP2 sharded-optimizer", "DP2"),
    ("gpt", "TP2 SP PP2 DP2 sharded-optimizer", "TP2 CP2 DP2 sharded-weights"),
    ("gpt", "TP2 PP2 VP2 CP2", "PP5 count-embedding count-loss"),
    ("llama", "", "TP8 SP"),
    ("llama", "TP8 SP", "PP8"),
    ("llama", "PP8", "TP2 SP CP2 DP2 sharded-optimizer"),
    ("llama", "CP4", "DP2 sharded-optimizer"),
    ("llama", "DP2 sharded-optimizer", "CP4"),
    ("llama", "DP8 sharded-weights", "TP2 PP2 VP2"),
    ("llama", "TP2 PP2 VP2", "PP7 first-stage 2"),
    ("llama", "PP2 VP2 DP2 sharded-optimizer", ""),
    ("llama", "PP2 VP2 DP2 sharded-optimizer", "PP4 VP2 DP2 sharded-optimizer"),
    ("llama fp8", "PP2 VP2", "DP4 sharded-weights"),
    ("llama fp8", "DP4 sharded-weights", "TP2 CP2"),
    ("gpt fp8", "TP2 SP PP2 DP2 sharded-optimizer", "TP2 SP PP2 DP2 sharded-optimizer"),
    ("gpt", "", ""),
    ("gpt", "TP2 PP2 VP2 CP2", "TP2 PP2 VP2 CP2"),
    ("llama", "DP8 sharded-weights", "DP8 sharded-weights"),
    ("llama", "PP8", "PP8"),
    ("llama", "TP2 SP CP2 DP2 sharded-optimizer", "TP2 SP CP2 DP2 sharded-optimizer"),
]


class Pairs:
    def __init__(self, runs):
        self.runs = runs
        self.first = {}

    def train_first(self, model, layout):
        """A, never interrupted: it saves where B takes over, and at the end."""
        if (model, layout) not in self.first:
            name = f"first-{len(self.first)}"
            self.runs.train_well(name, layout, STEPS, [f"{CALLBACK}every_n_train_steps={AT}", f"{CALLBACK}save_top_k=-1"], model)
            self.first[model, layout] = name
        return self.first[model, layout]

    def check(self, number, model, a, b):
        """The largest difference of a loss and a verdict."""
        first = self.train_first(model, a)
        second = f"second-{number}"
        origin = self.runs.step(first, AT)
        # With no step left to train it loads and saves.
        self.runs.train_well(second, b, AT, [f"model.resume_from_checkpoint={origin}"], model)
        self.expect_same(self.runs.step(second, AT), origin)
        self.runs.train_well(second, b, STEPS, [], model)
        losses, expected = self.runs.losses(second), self.runs.losses(first)
        if sorted(losses) != list(range(AT, STEPS)):
            raise Failure(f"B trained steps {sorted(losses)}")
        difference = max(abs(losses[step] / expected[step] - 1) for step in losses)
        if difference > (TOLERANCE_OF_FP8 if model.endswith("fp8") else TOLERANCE):
            raise Failure(f"the losses differ by {difference:.1e}")
        if a != b:
            return difference, "ok"
        if difference != 0:
            raise Failure(f"the same layout, losses differ by {difference:.1e}")
        self.expect_same(self.runs.step(second, STEPS), self.runs.step(first, STEPS))
        return difference, "ok, same bits"

    def expect_same(self, path, expected):
        different = names_of_difference(self.runs.digests(path), self.runs.digests(expected))
        if different:
            raise Failure(f"{len(different)} tensors differ in {path} and {expected}, {different[0]} first")


def run(given, folder):
    pairs = Pairs(Runs(given.program, folder))
    cases = FAST if given.fast else PAIRS
    failed = 0
    print("| model | saved in | ranks | loaded in | ranks | losses differ by | verdict |", "|---" * 7 + "|", sep="\n")
    for number, (model, a, b) in enumerate(cases):
        try:
            difference, verdict = pairs.check(number, model, a, b)
            result = f"{difference:.1e} | {verdict}"
        except Failure as failure:
            failed += 1
            result = f" | FAILED: {failure}"
        print(f"| {model} | {a or 'one rank'} | {ranks_of(a)} | {b or 'one rank'} | {ranks_of(b)} | {result} |", flush=True)
    print(f"\n{len(cases) - failed} of {len(cases)} pairs of layouts keep every tensor and go on alike.\n")
    return failed
