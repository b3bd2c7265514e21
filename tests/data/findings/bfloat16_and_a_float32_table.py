# activations are bfloat16 until a float32 table of positions is added; the layers after it compute in float32
import jax
import jax.numpy as jnp
import numpy as np
import optax

DIM, TOKENS, LAYERS = 64, 32, 4


def table(tokens, dim):
    angles = np.outer(np.arange(tokens), 1.0 / 10000 ** (np.arange(dim // 2) / (dim / 2)))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


POSITIONS = table(TOKENS, DIM)


def linear(x, w):
    return x @ w.astype(x.dtype)


def forward(params, tokens):
    x = linear(tokens.astype(jnp.bfloat16), params["embed"])
    x = x + POSITIONS  # must: JX302 first ~ on line 19, although it computes other products there in bfloat16

    def block(x, w):
        return x + jax.nn.gelu(linear(x, w)), None

    x, _ = jax.lax.scan(block, x, params["blocks"])
    return linear(x, params["head"]).astype(jnp.float32)


def loss_fn(params, tokens, targets):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, tokens), targets).mean()


@jax.jit
def train_step(params, tokens, targets):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, targets)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads), loss


keys = jax.random.split(jax.random.key(0), 3)
params = {
    "embed": jax.random.normal(keys[0], (16, DIM)) * 0.25,
    "blocks": jax.random.normal(keys[1], (LAYERS, DIM, DIM)) * 0.1,
    "head": jax.random.normal(keys[2], (DIM, 10)) * 0.1,
}
rng = np.random.default_rng(0)
losses = []
for _ in range(6):
    tokens = rng.normal(size=(16, TOKENS, 16)).astype(np.float32)
    params, loss = train_step(params, tokens, rng.integers(0, 10, (16, TOKENS)))
    losses.append(loss)
print(f"{float(losses[-1]):.3f}")
