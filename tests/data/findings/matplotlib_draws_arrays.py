import matplotlib

matplotlib.use("Agg")
import jax.numpy as jnp
import matplotlib.pyplot as plt


def draw():
    fig, ax = plt.subplots()
    x = jnp.linspace(0, 1, 100)
    ax.plot(x, x * 2, "b.")
    ax.fill_between(x, x, x * 2)  # must: JX133 first ~ asarray
    ax.contour(x, x, x[:, None] * x)
    ax.scatter(x, x)
    ax.hist(x)


draw()
