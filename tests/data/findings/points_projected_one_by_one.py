# bundle adjustment: each point is projected into each camera by a call outside jit
# must: JX605|JX133 first ~ apply jit to project as a whole
import jax
import jax.numpy as jnp
import numpy as np

CAMERAS, POINTS = 4, 24
rng = np.random.default_rng(0)
points = jnp.asarray(rng.normal(size=(POINTS, 3)) + [0, 0, 6], jnp.float32)
cameras = jnp.asarray(rng.normal(size=(CAMERAS, 6)) * 0.1, jnp.float32)


def rotation(w):
    angle = jnp.linalg.norm(w) + 1e-9
    x, y, z = w / angle
    cross = jnp.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return jnp.eye(3) + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * cross @ cross


def project(camera, point):
    seen = rotation(camera[:3]) @ point + camera[3:]
    return seen[:2] / seen[2]


def residuals(cameras, points, observed):
    found = []
    for i in range(CAMERAS):
        for j in range(POINTS):
            found.append(project(cameras[i], points[j]) - observed[i, j])
    return jnp.concatenate(found)


observed = jnp.array([[project(cameras[i], points[j]) for j in range(POINTS)] for i in range(CAMERAS)])
moved = points
for _ in range(6):
    moved = moved + 0.01 * jnp.mean(residuals(cameras, moved, observed))
print(float(jnp.abs(moved - points).max()))
