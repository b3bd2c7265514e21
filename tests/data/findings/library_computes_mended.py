# Mended: the call is jitted, and what is no array is static
# applies: fix-jit-method
import pathlib
import sys

import jax

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

from physics_library import Grid, Spectrum, random_field

grid = Grid(64, 0.1)
field = jax.jit(random_field, static_argnums=(1, 3))(jax.random.key(0), grid, 2.0, 4)
spectrum = Spectrum(grid)
print(field.sum(), spectrum.steps.sum())
