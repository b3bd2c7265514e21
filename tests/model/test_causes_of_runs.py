"""Which earlier call a miss is compared with, among hundreds."""

from written import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import causes
from jaxscope.model.load import load

F = function("predict")


def told(run):
    model = load(run)
    [f] = model.functions.values()
    return [(c.kind, c.text) for c in causes.of(model, f.compilations[-1])]


def test_the_first_of_hundreds_of_shapes_is_found_when_it_comes_back_in_another_dtype(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    for n in range(1, causes.LOOK_BACK + 50):
        log.compiled(F, key(leaf("x", n)))
    log.compiled(F, key(leaf("x", 1, dtype="int32")))
    assert told(run) == [("dtype", "x is now i32[1], before f32[1]")]
