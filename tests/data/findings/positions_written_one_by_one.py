# A trajectory is written to a file: its frames, atoms and coordinates are taken one by one from a JAX array
# may: JX133 note
import io

import jax


@jax.jit
def simulate(key):
    return jax.random.uniform(key, (1000, 21, 3))


frames = simulate(jax.random.key(0))
file = io.StringIO()
for positions in frames:  # must: JX133 first ~ iterating over the array took
    file.write(f"{len(positions)}\n")
    for i, atom in enumerate(positions):
        x, y, z = atom
        file.write(f"{i + 1} C {x} {y} {z}\n")
print(len(file.getvalue()))
