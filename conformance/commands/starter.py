"""The file that ``attention-conformance new`` writes: an attention that runs as it is, to be replaced piece by piece."""

import shlex
from pathlib import Path
from string import Template

from conformance.errors import UsageError
from conformance.system import files

_TEXT = Template('''"""Attention of my own, as attention-conformance can judge it.

    $smoke
    $run

The first command says whether this file is put together rightly, the second whether the results are right. Replace the body of
``attention`` by a call of your own code, and try again. More is told by

    $describe
    $explain ATT-MASK-003
"""

$imports
from conformance.adapter import Support


${decorator}def attention(query, key, value, *, mask=None, bias=None, causal=False, scale=None):
    """softmax(scale * query key^T + bias, over the keys that may be seen) value.

    The three arrays come by position: query (batch, heads, Lq, width), key (batch, kv heads, Lk, width) and value (batch, kv
    heads, Lk, value width) give (batch, heads, Lq, value width), in the dtype of the query. The others are passed by name, and
    only where a case asks for them: so the defaults here are what is tested too. A parameter that your code has no use for is
    best deleted, since its name declares a feature; what the suite can express by another one, it then does.

    mask     boolean, True = may be seen, of a shape that broadcasts to (batch, heads, Lq, Lk)
    bias     numbers that are added to the scaled scores, of such a shape; may hold -inf
    causal   True: query i sees keys 0 to i
    scale    a number; by default 1 / sqrt(width)

    Two more may be added: key_lengths, for each batch row how many leading keys count; and alignment, "top-left" or
    "bottom-right", how the causal triangle lies where Lq and Lk differ.
    """
$body

# What the parameters cannot say. Whatever is left out has a default.
attention.conformance = Support(
    framework="$framework",
    # Where 16-bit inputs are rounded; outputs are held to it. The default: after every step.
    profile={"float64": "strict", "float32": "strict", "float16": "inner32", "bfloat16": "inner32"},$compiles
    # axes="blhd",  # query, key, value and output are (batch, length, heads, width)
    # dtypes=("float32", "bfloat16"),  # what it takes; the others count as UNSUPPORTED, never as passed
    # lacks=frozenset({"grouped-heads", "value-width", "cross-length"}),  # what it does not offer, likewise
    # returns=("output", "lse"),  # the log-sum-exp of each row beside the output, judged as well; "-" for what is not
    # layouts=("contiguous",),  # no transposed, strided or expanded arrays, please
    # sizes=(128, 4096),  # at which compiled code takes another way; those in Python source are read
    # conventions={"CON-EMPTY-ROW": "nan"},  # what it is meant to do where libraries differ; compared with what it does
)
''')

_NUMPY = """\
    dtype = query.dtype
    work = np.promote_types(dtype, np.float32)  # 16-bit inputs are computed in float32
    query, key, value = (array.astype(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]  # so many query heads share a key head
    key, value = key.repeat(shared, axis=1), value.repeat(shared, axis=1)
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) @ value).astype(dtype)
"""

_TORCH = """\
    dtype = query.dtype
    work = torch.promote_types(dtype, torch.float32)  # 16-bit inputs are computed in float32
    query, key, value = (array.to(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]  # so many query heads share a key head
    key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
    return (torch.softmax(scores, dim=-1) @ value).to(dtype)
"""

_JAX = """\
    dtype = query.dtype
    work = jnp.promote_types(dtype, jnp.float32)  # 16-bit inputs are computed in float32
    query, key, value = (array.astype(work) for array in (query, key, value))
    shared = query.shape[1] // key.shape[1]  # so many query heads share a key head
    key, value = key.repeat(shared, axis=1), value.repeat(shared, axis=1)
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    if causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    return (jax.nn.softmax(scores, axis=-1) @ value).astype(dtype)
"""

_PARTS: dict[str, dict[str, str]] = {
    "numpy": {"imports": "import numpy as np\n", "decorator": "", "body": _NUMPY, "compiles": ""},
    "torch": {"imports": "import torch\n", "decorator": "", "body": _TORCH, "compiles": ""},
    "jax": {
        "imports": "from functools import partial\n\nimport jax\nimport jax.numpy as jnp\n",
        "decorator": '@partial(jax.jit, static_argnames=("causal",))\n',
        "body": _JAX,
        "compiles": "\n    compiles=True,  # each new shape costs a compilation, so that the cases keep to a few shapes",
    },
}
FRAMEWORKS = tuple(_PARTS)


def starter(name: str, framework: str) -> str:
    """The content of the file ``name``."""
    function = f"{name}:attention"
    commands = {
        "smoke": command("smoke", function),
        "run": command("run", "--implementation", function),
        "describe": command("describe", function),
        "explain": command("explain"),
    }
    return _TEXT.substitute(_PARTS[framework], framework=framework, **commands)


def command(*words: str) -> str:
    """A command line of the suite's, as one pastes it."""
    return shlex.join(["attention-conformance", *words])


def write_starter(path: Path, framework: str) -> None:
    """Writes the starting point. Raises UsageError, and changes nothing, where there is a file already or none can be."""
    if path.suffix != ".py" or path.stem in FRAMEWORKS:
        raise UsageError(f"{path} is no good name for a module: give one such as my_attention.py.")
    text = starter(str(path), framework)
    try:
        files.create(path, text)
    except FileExistsError:
        raise UsageError(f"{path} exists already, and nothing is overwritten: give another name.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
