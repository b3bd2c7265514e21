"""Which code makes a program call Python."""

import pytest

from jaxscope.analysis.stablehlo import reading

TEXT = """
#f = loc("{file}":7:3)
#c = loc("jit(step)/pure_callback"(#f))
module @m {{
func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc(#c)
return %0 : tensor<4xf32>
}}
}}
"""


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/v/site-packages/equinox/_errors.py", "equinox"),
        ("/v/site-packages/jax/_src/callback.py", None),
        ("/home/ann/train.py", None),
    ],
)
def test_the_package_that_makes_a_callback_is_known(file, library):
    (callback,) = reading.analyze(TEXT.format(file=file)).callbacks
    assert callback.library == library
