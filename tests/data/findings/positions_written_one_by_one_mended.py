# Mended: the array is copied to the host once
# applies: fix-iterate-numpy, fix-iterate-numpy-arrays
import io

import jax
import numpy as np


@jax.jit
def simulate(key):
    return jax.random.uniform(key, (1000, 21, 3))


frames = np.asarray(simulate(jax.random.key(0)))
file = io.StringIO()
for positions in frames:
    file.write(f"{len(positions)}\n")
    for i, atom in enumerate(positions):
        x, y, z = atom
        file.write(f"{i + 1} C {x} {y} {z}\n")
print(len(file.getvalue()))
