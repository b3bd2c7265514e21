# applies: fix-give-numpy
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def draw():
    fig, ax = plt.subplots()
    x = np.linspace(0, 1, 100)
    ax.plot(x, x * 2, "b.")
    ax.fill_between(x, x, x * 2)
    ax.contour(x, x, x[:, None] * x)
    ax.scatter(x, x)
    ax.hist(x)


draw()
