# model predictive control: each iteration calls a backward and a forward pass, both outside jit
import jax.numpy as jnp

HORIZON = 6
goal = jnp.array([1.0, 0.0])


def moved(state, push):
    speed = 0.95 * state[1] + 0.1 * push
    return jnp.stack([state[0] + 0.1 * speed, speed])


def backward(states, pushes):
    slope = jnp.zeros(2)
    gains = []
    for t in reversed(range(HORIZON)):
        gains.append(-0.5 * (0.1 * slope[1] + 0.1 * pushes[t]))
        slope = slope + 2 * (states[t] - goal)
    return jnp.stack(gains[::-1])


def forward(start, pushes):
    states = [start]
    for t in range(HORIZON):
        states.append(moved(states[t], pushes[t]))
    return jnp.stack(states), jnp.sum((states[-1] - goal) ** 2)


start, pushes = jnp.zeros(2), jnp.zeros(HORIZON)
states, cost = forward(start, pushes)
for iteration in range(600):
    pushes = pushes + backward(states, pushes)  # must: JX605|JX133 first ~ apply jit to (backward and forward|forward and backward), each as a whole
    states, cost = forward(start, pushes)
print(float(cost))
