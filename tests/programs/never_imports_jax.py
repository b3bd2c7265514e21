"""Does not use JAX at all."""

import sys

if __name__ == "__main__":
    total = sum(range(10))
    print(f"never_imports_jax: {total} {sys.argv[1:]} {'jax' in sys.modules}")
