# a library draws and filters a field outside jit: it does not only read arrays
# never: pass NumPy arrays
import pathlib
import sys

import jax

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

from physics_library import Grid, Spectrum, random_field

grid = Grid(64, 0.1)
key = jax.random.key(0)
field = random_field(key, grid, 2.0, 4)  # must: JX133 first ~ jitted = jax.jit\(random_field, static_argnums=3\) \(other arguments
spectrum = Spectrum(grid)
print(field.sum(), spectrum.steps.sum())
