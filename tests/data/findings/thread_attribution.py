# a thread whose target is a library's function; and an event loop: whose line
# never: threading
# never: events.py
import asyncio
import functools
import threading

import jax.numpy as jnp


def main():
    t = threading.Thread(target=jnp.ones, args=((3, 5),))
    t.start()
    t.join()
    loop = asyncio.new_event_loop()
    loop.call_soon(functools.partial(jnp.ones, (7, 5)))
    loop.call_soon(functools.partial(jnp.flip, jnp.ones((7, 6))))
    loop.call_soon(loop.stop)
    loop.run_forever()


main()
