"""Faults that public reports describe and that cannot be written yet, by what the suite would have to offer first.

They are data for whoever adds the operation or the feature: each becomes a fault of the catalogue, with its siblings.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pending:
    """``waits_for`` is the operation or feature that is missing; ``faults`` says what is done wrong, and where that was seen."""

    kind: str
    waits_for: str
    faults: tuple[tuple[str, str], ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(source for _, source in self.faults)


def _github(project: str, path: str) -> str:
    return f"{project}: https://github.com/{path}"


PENDING: tuple[Pending, ...] = (
    Pending(
        "gradients",
        "derivatives of the output by query, key, value and bias",
        (
            (
                "transposes K and V in the backward pass although they were saved transposed",
                _github("diffusers", "huggingface/diffusers/pull/14341"),
            ),
            (
                "steps from head to head by the padded length in the backward pass",
                _github("FlagGems", "flagos-ai/FlagGems/pull/898"),
            ),
            (
                "takes inf − inf in the rows that fill the last tile, so that gradients become NaN",
                _github("pytorch", "pytorch/pytorch/issues/153799"),
            ),
            (
                "walks through other blocks of a sparse mask backwards than forwards",
                _github("pytorch", "pytorch/pytorch/issues/158212"),
            ),
            ("keeps no log-sum-exp where only the bias needs a gradient", _github("pytorch", "pytorch/pytorch/issues/148476")),
            (
                "splits the head index by the size of a group where the number of key heads is due",
                _github("native-sparse-attention-triton", "XunhaoLai/native-sparse-attention-triton/issues/27"),
            ),
            (
                "leaves the tail rows of the backward pass without a value",
                _github("cudnn-frontend", "NVIDIA/cudnn-frontend/issues/160"),
            ),
            (
                "goes backwards with one fixed causal setting whatever the forward pass had",
                _github("triton", "triton-lang/triton/issues/4541"),
            ),
        ),
    ),
    Pending(
        "sliding-window",
        "a window of keys around each query",
        (
            ("sees W + 1 keys instead of W", _github("transformers", "huggingface/transformers/issues/29623")),
            ("has a mask one key wider than the cache", _github("mlx-lm", "ml-explore/mlx-lm/pull/390")),
            (
                "starts the first tile of keys without the offset Lk − Lq",
                _github("flashinfer", "flashinfer-ai/flashinfer/issues/4972"),
            ),
            ("cuts the window at tile borders only", _github("sglang", "sgl-project/sglang/pull/31501")),
            (
                "aligns the window at the other corner than the triangle",
                _github("ROCm flash-attention", "ROCm/flash-attention/issues/158"),
            ),
            ("applies the window to cached keys only", _github("tvm", "apache/tvm/pull/18630")),
            ("counts the rows of the window from the end of the prefix", _github("lalamo", "trymirai/lalamo/pull/200")),
            (
                "plans the tiles of the window with the number of query heads for that of key heads",
                _github("vllm", "vllm-project/vllm/issues/17476"),
            ),
        ),
    ),
    Pending(
        "softcap",
        "scores bounded by cap · tanh(s / cap)",
        (
            (
                "hides first and caps then, so that hidden keys have the score −cap",
                _github("llama.cpp", "ggml-org/llama.cpp/pull/29034"),
            ),
        ),
    ),
    Pending(
        "sinks",
        "a learned score without a value that takes part in the normaliser",
        (
            (
                "treats the sink of a single query unlike that of many, as if once per split",
                _github("mlx", "ml-explore/mlx/issues/3452"),
            ),
        ),
    ),
    Pending(
        "alibi",
        "a bias that falls off linearly with distance",
        (
            (
                "has the bias in the length of the query where keys are counted",
                _github("keras-hub", "keras-team/keras-hub/issues/2861"),
            ),
            ("counts heads from 0 in the exponent of the slope", _github("aprender", "paiml/aprender/pull/2143")),
            ("has other slopes than the published ones", _github("ggml", "ggml-org/ggml/pull/143")),
            (
                "measures distance from the other corner where lengths differ",
                _github("flash-attention", "Dao-AILab/flash-attention/issues/907"),
            ),
        ),
    ),
    Pending(
        "relative-position-bias",
        "buckets of relative positions with a learned bias each",
        (
            ("adds the bias of self-attention in cross-attention", _github("transformers", "huggingface/transformers/pull/8518")),
            ("puts distances into wrong buckets", _github("x-transformers", "lucidrains/x-transformers/pull/10")),
        ),
    ),
    Pending(
        "rotary-embedding",
        "rotation of query and key by their positions",
        (
            (
                "pairs channel j with j + d/2 of the whole width where a part of it rotates",
                _github("cascadia", "labscommunity/cascadia/pull/69"),
            ),
            (
                "always rotates halves, also where neighbours are paired",
                _github("TransformerLens", "TransformerLensOrg/TransformerLens/pull/365"),
            ),
            ("halves the rotated width twice", _github("RETRO-pytorch", "lucidrains/RETRO-pytorch/issues/12")),
            ("reads the first half of the angles for both halves", _github("ncnn", "Tencent/ncnn/issues/6833")),
            (
                "lays angles out for neighbours and rotates halves",
                _github("how-to-train-your-gpt", "raiyanyahya/how-to-train-your-gpt/issues/6"),
            ),
            ("computes angles in bfloat16", _github("transformers", "huggingface/transformers/pull/29285")),
            (
                "rounds frequencies to bfloat16 before the product with the position",
                _github("sglang-jax", "sgl-project/sglang-jax/issues/1472"),
            ),
            (
                "stretches positions by a constant and reads the length from the axis of heads",
                _github("mlx-lm", "ml-explore/mlx-lm/issues/1545"),
            ),
            (
                "lets the attention factor of YaRN cancel to 1 (disputed)",
                _github("exllamav3", "turboderp-org/exllamav3/issues/259"),
            ),
            ("had the same rotation fault in the code and in the expected values", _github("mlxcel", "lablup/mlxcel/pull/1389")),
        ),
    ),
    Pending(
        "cache",
        "keys and values of earlier calls, with an offset of positions",
        (
            ("leaves the newest key out of the count", _github("Megatron-LM", "NVIDIA/Megatron-LM/issues/1425")),
            ("numbers positions through the padding on the left", _github("nnsight", "ndif-team/nnsight/pull/673")),
            ("gives all rows of a padded batch the position of the longest", _github("unsloth", "unslothai/unsloth/pull/4078")),
            (
                "advances the offset in the first layer, so that the others are one ahead",
                _github("flash-linear-attention", "fla-org/flash-linear-attention/issues/766"),
            ),
            (
                "takes the number of keys kept for the number of keys seen",
                _github("VeloxQuant-MLX", "rajveer43/VeloxQuant-MLX/issues/389"),
            ),
            (
                "merges caches of different lengths without moving their positions",
                _github("maclocal-api", "scouzi1966/maclocal-api/issues/92"),
            ),
            ("rotates cached keys again in every call", _github("shainet", "NeuraLegion/shainet/pull/110")),
            ("exchanges source and destination when it cuts the table of angles", _github("nntile", "nntile/nntile/pull/360")),
            (
                "has expected values for a mask beside cached keys that contradict the specification",
                _github("onnxruntime", "microsoft/onnxruntime/issues/26813"),
            ),
        ),
    ),
    Pending(
        "packed-sequences",
        "several sequences in one row, told apart by their beginnings",
        (
            (
                "reshapes by the number of sequences where one of them is empty",
                _github("flash-attention", "Dao-AILab/flash-attention/issues/1537"),
            ),
            (
                "passes one argument too many, so that the ones after it shift",
                _github("flash-attention", "Dao-AILab/flash-attention/issues/1040"),
            ),
        ),
    ),
    Pending(
        "log-sum-exp",
        "the logarithm of the normaliser as a second output",
        (
            ("returns it to the base 2", _github("tokenspeed", "lightseekorg/tokenspeed/pull/571")),
            (
                "adds the logarithms of two parts where the sum's logarithm is due",
                _github("ring-flash-attention", "zhuzilin/ring-flash-attention/issues/20"),
            ),
        ),
    ),
    Pending(
        "returned-weights",
        "the attention weights as a second output",
        (
            ("returns them after dropout, so that they do not add up to 1", _github("pytorch", "pytorch/pytorch/issues/42929")),
            (
                "returns their mean over heads where each head's are asked for",
                _github("fairseq", "facebookresearch/fairseq/issues/3365"),
            ),
            ("treats empty rows otherwise once weights are asked for", _github("pytorch", "pytorch/pytorch/issues/160064")),
        ),
    ),
    Pending(
        "modes",
        "one module asked in training and in inference, with and without gradients",
        (
            (
                "takes a kernel without a rule for empty rows where no gradient is wanted",
                _github("pytorch", "pytorch/pytorch/issues/163997"),
            ),
            (
                "gives NaN for empty rows on the fast path of inference alone",
                _github("pytorch", "pytorch/pytorch/pull/190486"),
            ),
        ),
    ),
    Pending(
        "dropout",
        "weights dropped at random, judged by distribution",
        (
            ("drops outside of training too", _github("timm", "huggingface/pytorch-image-models/pull/1978")),
            ("drops twice, weights and output", _github("xformers", "facebookresearch/xformers/pull/301")),
            (
                "draws other numbers than another implementation, which is no fault: only means and shares can be compared",
                _github("pytorch", "pytorch/pytorch/issues/149726"),
            ),
        ),
    ),
    Pending(
        "empty-axes",
        "problems with an axis of size 0",
        (
            ("rejects a batch of no rows", _github("pytorch", "pytorch/pytorch/issues/133780")),
            ("divides by a head count of 0", _github("pytorch", "pytorch/pytorch/issues/141218")),
        ),
    ),
    Pending(
        "invalid-shapes",
        "requests whose shapes contradict each other, beyond head counts",
        (("accepts a K shorter than V and reads beyond its end", _github("pytorch", "pytorch/pytorch/pull/193728")),),
    ),
    Pending(
        "mixed-dtypes",
        "inputs of different dtypes",
        (("refuses a float32 bias beside queries that were cast down", _github("pytorch", "pytorch/pytorch/issues/99012")),),
    ),
    Pending(
        "other-ranks",
        "inputs of more or fewer than four axes, and calls mapped over one",
        (
            ("makes its mask for three axes whatever there are", _github("tensorflow", "tensorflow/tensorflow/issues/58726")),
            ("forgets the group size when it is mapped over an axis", _github("mlx", "ml-explore/mlx/issues/3383")),
        ),
    ),
    Pending(
        "several-layers",
        "outputs that become the inputs of another layer",
        (
            (
                "lets the NaN of a padded row through a weight of 0 in the next layer",
                _github("transformers", "huggingface/transformers/issues/38690"),
            ),
        ),
    ),
)
