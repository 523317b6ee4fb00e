"""How the check scripts write a layout ("TP2 SP PP2 DP2 sharded-optimizer") and what the program is told for it."""

import math
import re

GLOBAL_BATCH = 8

# The words a layout is written in; a number may follow.
WORDS = {
    "TP": "model.tensor_model_parallel_size={}",
    "SP": "model.sequence_parallel=true",
    "PP": "model.pipeline_model_parallel_size={}",
    "VP": "model.virtual_pipeline_model_parallel_size={}",
    "CP": "model.context_parallel_size={}",
    "DP": "",  # what is left of the ranks
    "sharded-optimizer": "model.wrap_with_zero=true",
    "sharded-weights": "model.fsdp=true",
    "zero-bubble": "model.pipeline_schedule=zero_bubble",
    "first-stage": "model.num_layers_in_first_pipeline_stage={}",
    "last-stage": "model.num_layers_in_last_pipeline_stage={}",
    "count-embedding": "model.account_for_embedding_in_pipeline_split=true",
    "count-loss": "model.account_for_loss_in_pipeline_split=true",
    "selective": "model.activations_checkpoint_granularity=selective",
    "full-uniform": "model.activations_checkpoint_granularity=full model.activations_checkpoint_method=uniform "
                    "model.activations_checkpoint_num_layers={}",
    "full-block": "model.activations_checkpoint_granularity=full model.activations_checkpoint_method=block "
                  "model.activations_checkpoint_num_layers={}",
    "micro-batch": "",
    "small-buckets": "model.optim.bucket_cap_mb=1",
    "bf16-sums": "model.optim.grad_sync_dtype=bf16",
    "documents": "model.data.reset_attention_mask=true model.data.reset_position_ids=true model.data.eod_mask_loss=true",
}
AXES = ("TP", "PP", "CP", "DP")


def words_of(layout):
    """{"TP": "2", "SP": "", ...}"""
    words = {}
    for word in layout.split():
        axis = re.fullmatch(r"([A-Z]+)(\d+)", word)
        if axis:
            words[axis[1]] = axis[2]
        elif word.isdigit():
            words[list(words)[-1]] = word
        else:
            words[word] = ""
    return words


def ranks_of(layout):
    words = words_of(layout)
    return math.prod(int(words.get(axis, 1)) for axis in AXES)


def micro_batch_of(layout):
    """Where the layout says nothing, the largest with two micro batches on a rank, or as many as there are stages."""
    words = words_of(layout)
    count = max(2, int(words.get("PP", 1)))
    most = GLOBAL_BATCH // (int(words.get("DP", 1)) * count)
    return int(words.get("micro-batch") or max([size for size in (1, 2, 4) if size <= most], default=1))


def overrides_of(layout):
    overrides = " ".join(WORDS[word].format(number) for word, number in words_of(layout).items())
    return [*overrides.split(), f"model.micro_batch_size={micro_batch_of(layout)}"]
