# A linear probe: the frozen encoder computes the features of the same images again in each epoch
import jax
import jax.numpy as jnp
import numpy as np
import optax

IMAGES, SIZE, WIDTH, CLASSES, BATCH, EPOCHS = 640, 24, 24, 10, 64, 12


def encoder(params, images):
    x = images[..., None]
    for kernel in params["kernels"]:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x.mean((1, 2)) @ params["out"]


encode = jax.jit(encoder)
optimizer = optax.adam(1e-2)


@jax.jit
def step(head, state, features, labels):
    def loss(head):
        return optax.softmax_cross_entropy_with_integer_labels(features @ head, labels).mean()

    value, grads = jax.value_and_grad(loss)(head)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(head, updates), state, value


rng = np.random.default_rng(0)
images = rng.normal(size=(IMAGES, SIZE, SIZE)).astype(np.float32)
labels = rng.integers(0, CLASSES, IMAGES)
kernels = [rng.normal(size=(3, 3, a, WIDTH)).astype(np.float32) * 0.1 for a in (1, WIDTH, WIDTH)]
params = {"kernels": kernels, "out": rng.normal(size=(WIDTH, 32)).astype(np.float32)}
head = jnp.zeros((32, CLASSES))
state = optimizer.init(head)
for epoch in range(EPOCHS):
    order = rng.permutation(IMAGES)
    for i in range(0, IMAGES, BATCH):
        rows = order[i : i + BATCH]
        features = encode(params, images[rows])  # must: JX208 first ~ calls \w+ for the same rows of images again
        head, state, value = step(head, state, features, labels[rows])
    print(f"epoch {epoch} loss {float(value):.3f}")
