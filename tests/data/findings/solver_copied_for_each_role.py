# two controllers share a model by copy.deepcopy, so that each method of the model is compiled for each copy
import copy
import functools

import jax
import jax.numpy as jnp


class Pendulum:
    def __init__(self, mass, length):
        self.mass, self.length = mass, length
        self.calls = 0

    @functools.partial(jax.jit, static_argnames="self")
    def step(self, state, torque):
        angle, speed = state
        change = torque / (self.mass * self.length**2) - 9.81 / self.length * jnp.sin(angle)
        speed = speed + 0.02 * change - 0.001 * jnp.tanh(speed) * jnp.cos(angle)
        return jnp.stack([angle + 0.02 * speed, speed])

    @functools.partial(jax.jit, static_argnames="self")
    def energy(self, state):
        return 0.5 * self.mass * (self.length * state[1]) ** 2 - self.mass * 9.81 * jnp.cos(state[0])

    @functools.partial(jax.jit, static_argnames="self")
    def curvature(self, state, torque):
        return jax.jacfwd(jax.jacrev(self.step))(state, torque)


class Controller:
    def __init__(self, model, gain):
        self.model = copy.deepcopy(model)
        self.gain = gain

    def act(self, state):
        energy = self.model.energy(state)  # may: JX108
        bend = self.model.curvature(state, jnp.float32(0.0))  # must: JX108 first ~ use one Pendulum object for all calls: .*copied \(copy.deepcopy\) at
        return -self.gain * (energy * state[1] + 1e-3 * bend.sum())


pendulum = Pendulum(1.0, 0.7)
for gain in (0.5, 1.0, 2.0, 4.0):
    controller, state = Controller(pendulum, gain), jnp.array([0.3, 0.0])
    for _ in range(5):
        state = pendulum.step(state, controller.act(state))
    print(gain, state.round(3))
