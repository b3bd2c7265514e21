"""Reading the stack: the user's lines, and locals without a trace."""

import json
import sys
import weakref

from jaxscope.capture import frames
from jaxscope.jax_internals import frame_reading


class Thing:
    pass


def test_a_local_that_was_read_dies_when_the_program_lets_it_go():
    """Before Python 3.13 ``f_locals`` caches a dict on the frame that would keep it."""
    x = Thing()
    ref = weakref.ref(x)
    assert frame_reading.read(sys._getframe(), ("x", "no_such_name"))["x"] is x
    x = None
    assert ref() is None


def test_reading_changes_no_local_of_the_program():
    x, y = 1, 2
    assert frame_reading.read(sys._getframe(), ("x",)) == {"x": 1}
    assert (x, y) == (1, 2) and locals()["y"] == 2


def test_module_namespaces_are_left_alone():
    code = compile("import sys\nframe = sys._getframe()\nfound = read(frame, ('frame',))\n", "m", "exec")
    space = {"read": frame_reading.read, "__name__": "m"}
    exec(code, space)
    assert space["found"] == {} and "frame" in space


def calls_back(module: str, act):
    """A function that lives in ``module`` and calls ``act``."""
    space = {"__name__": module}
    exec("def call(act):\n    return act()\n", space)
    return space["call"](act)


def test_frames_of_jax_and_of_wrapper_libraries_are_not_the_users():
    seen = calls_back("flax.nnx.transforms", lambda: frames.user_frames(sys._getframe(1)))
    assert seen[0].function.startswith("test_frames_of_jax") or seen[0].function == "calls_back"
    assert not any("flax" in f.file for f in seen)


def test_further_wrapper_libraries_can_be_named():
    try:
        frames.configure(["mylib"])
        assert frames.is_library("mylib.training") and not frames.is_library("mylibrary")
    finally:
        frames.configure([])
    assert not frames.is_library("mylib.training")


def entrance(*modules: str, callbacks=frozenset()) -> int:
    return entered(*modules, callbacks=callbacks)[0]


def entered(*modules: str, callbacks=frozenset()) -> tuple[int, str | None]:
    """What ``frames.into_library`` gives below a stack of functions of ``modules``, the outermost first."""
    space = {"__name__": "jax.innermost", "look": lambda f: frames.into_library(f, callbacks), "sys": sys}
    exec("def f0():\n    return look(sys._getframe())\n", space)
    call = space["f0"]
    for n, module in enumerate(reversed(modules), 1):
        own = {"__name__": module, "call": call}
        exec(f"def f{n}():\n    return call()\n", own)
        call = own[f"f{n}"]
    return call()


def test_the_line_that_called_a_library_differs_from_lines_that_the_library_calls():
    assert entrance("mine") == 0
    assert entrance("mine", "mine") == 0
    assert entrance("mine", "haiku.transform", "mine") == 1
    assert entrance("mine", "mine", "haiku.transform", "jax", "mine", "mine") == 2
    assert entrance("mine", "haiku.transform", "mine", "flax.linen", "mine") == 2
    assert entered("mine", "jax._src.traceback_util", "flax.linen", "mine") == (1, "flax")
    assert entered("mine", "numpyro.infer", "jax", "mine") == (1, "numpyro")


def test_a_function_that_a_tree_map_or_numpy_applies_calls_the_library_itself():
    assert entered("mine", "jax._src.tree", "jax._src.tree_util", "mine", "diffrax") == (0, "diffrax")
    assert entered("mine", "numpy.lib._function_base_impl", "mine", "jaxopt") == (0, "jaxopt")
    assert entered("mine", "jax._src.tree_util") == (0, "jax"), "the line applies a function of JAX"


def test_a_watched_function_is_no_library_between_two_lines():
    assert entrance("mine", "jaxscope.capture.warm", "mine") == 0


def test_a_line_that_runs_a_compiled_program_does_not_enter_what_its_callback_does():
    assert entrance("mine", "jax.callback", "mine", "mine") == 2
    assert entrance("mine", "jax.callback", "mine", "mine", callbacks={"f3"}) == 0


def test_a_decorator_and_what_runs_tests_are_no_library_that_a_line_enters():
    assert entrance("mine", "unittest.case", "contextlib", "mine") == 0
    assert entrance("mine", "unittest.main", "chex.variants", "mine") == 0
    assert entrance("mine", "jaxtyping", "mine") == 0
    assert entrance("mine", "_pytest.python", "mine", "haiku.transform", "mine") == 1


def test_the_package_whose_line_raised_is_named(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "oldpackage"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def use(x):\n    return x.no_such_name\n")
    monkeypatch.syspath_prepend(str(package.parent))
    import oldpackage

    def raised(act):
        try:
            act()
        except (AttributeError, ValueError) as e:
            return frames.raised_in(e.__traceback__)

    assert raised(lambda: oldpackage.use(1)) == "oldpackage"
    assert raised(lambda: (1).no_such_name) is None
    assert raised(lambda: json.loads("{")) is None, "Python's own modules are left out"
    assert frames.raised_in(None) is None
