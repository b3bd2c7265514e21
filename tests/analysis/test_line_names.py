"""What a line of the source says about the functions and variables that it names."""

import textwrap

from jaxscope.analysis import line_names


def test_variables_that_a_function_captures_are_those_that_the_code_around_it_sets_anew():
    source = textwrap.dedent("""
        scale = 2
        for i in range(8):
            decay = 0.9 ** i
            def loss(theta):
                return solve(lambda y, t: -decay * t * theta * scale * jnp.tanh(y))
            @jax.jit
            def other(x, n=3):
                y = x + i
                return y * n * decay
    """)
    assert line_names.captured(source, 6) == ["decay", "theta"]
    assert line_names.captured(source, 7) == ["i", "decay"]
    assert line_names.captured(source, 5) == ["decay"]
    assert line_names.captured(source, 2) == line_names.captured(None, 6) == []


def test_a_function_that_a_loop_defines_again_is_found_on_the_lines_that_name_it():
    source = textwrap.dedent("""
        for i in range(8):
            decay = 0.9 ** i
            def loss(theta):
                return decay * theta
            theta = theta - jax.grad(loss)(theta)
        print(loss(theta))
    """)
    assert line_names.defined_in_loop(source, 6) == ("loss", ("decay",))
    assert line_names.defined_in_loop(source, 7) is line_names.defined_in_loop(source, 3) is None


def test_a_call_of_numpy_on_a_line_is_quoted_and_a_call_of_jax_is_not():
    source = "import numpy as np\nimport jax.numpy as jnp\ny = x / np.sqrt(dim)\nz = jnp.sqrt(x)\n"
    assert line_names.numpy_call(source, 3) == "np.sqrt(dim)"
    assert line_names.numpy_call(source, 4) is None
    assert line_names.numpy_call(None, 3) is None
