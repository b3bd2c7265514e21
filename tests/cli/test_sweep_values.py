"""What ``--vary`` may say, and what becomes of the script's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.cli import sweep_values
from jaxscope.cli.sweep_values import Setting
from jaxscope.errors import UsageError
from jaxscope.launch.command import Command


def spelled(*words):
    return [" ".join(f"{s.name}={s.value}" for s in each) for each in sweep_values.settings(words)]


def test_each_value_is_a_run_and_several_names_give_every_combination():
    assert spelled("MESH=64x4,32x8") == ["MESH=64x4", "MESH=32x8"]
    assert spelled("A=1,2", "--b=x,y") == ["A=1 --b=x", "A=1 --b=y", "A=2 --b=x", "A=2 --b=y"]
    assert spelled() == [""] and spelled("A=1,2,1") == ["A=1", "A=2"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("'1,2',3", ["1,2", "3"]),
        ('"data,model","data"', ["data,model", "data"]),
        (r"a\,b,c", ["a,b", "c"]),
        (r"C:\dir,\\x", [r"C:\dir", r"\x"]),
        ("'',1", ["", "1"]),
        ("--xla_a=1 --xla_b,--xla_c", ["--xla_a=1 --xla_b", "--xla_c"]),
        ('it\'s,"a"b', ["it's", '"a"b']),
    ],
)
def test_a_comma_within_a_value_is_quoted_or_escaped(text, values):
    assert sweep_values.values(text) == values


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["MESH"], "has no values"),
        (["MESH="], "an empty value"),
        (["MESH=a,,b"], "an empty value"),
        (["MESH='a,b"], "no closing '"),
        (["my-mesh=a,b"], "neither an environment variable nor a flag"),
        (["--=a,b"], "neither an environment variable nor a flag"),
        (["JAXSCOPE_OPTIONS=a"], "configures jaxscope"),
        (["A=1", "A=2"], "given 2 times"),
        (["A=1,2,3,4,5,6,7,8,9", "B=1,2,3,4,5,6,7,8"], "9 x 8 = 72 runs, more than the limit of 64"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, said):
    with pytest.raises(UsageError) as e:
        sweep_values.settings(words)
    assert said in e.value.message and e.value.hint


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True))
def test_any_values_come_back_from_their_quotes(values):
    quote = {v: "'" if "'" not in v else '"' for v in values}
    whole = [v for v in values if quote[v] not in v]
    if whole:
        assert sweep_values.values(",".join(f"{quote[v]}{v}{quote[v]}" for v in whole)) == whole


@given(st.text(max_size=40))
def test_no_text_is_too_odd(text):
    try:
        assert all(each for each in sweep_values.settings([text]))
    except UsageError as e:
        assert e.message


@pytest.mark.parametrize(
    ("words", "setting", "after"),
    [
        ("train.py --lr 1", "--mesh=2", "train.py --lr 1 --mesh=2"),
        ("train.py --mesh 4 --lr 1", "--mesh=2", "train.py --mesh 2 --lr 1"),
        ("train.py --mesh=4 x", "--mesh=2", "train.py --mesh=2 x"),
        ("train.py --mesh 4 --mesh=8", "--mesh=2", "train.py --mesh 4 --mesh=2"),
        ("train.py --mesh --lr 1", "--mesh=2", "train.py --mesh=2 --lr 1"),
        ("train.py --lr -1e-3", "--lr=2", "train.py --lr 2"),
        ("train.py -b 4", "-b=2", "train.py -b 2"),
        ("train.py fit", "-b=2", "train.py fit -b 2"),
        ("train.py a -- --mesh 4", "--mesh=2", "train.py a --mesh=2 -- --mesh 4"),
        ("-m train --mesh 4", "--mesh=2", "-m train --mesh 2"),
        ("-m --mesh", "--mesh=2", "-m --mesh --mesh=2"),
        ("--mesh 4", "--mesh=2", "--mesh 4 --mesh=2"),  # a script of that name
        ("train.py --mesher 4", "--mesh=2", "train.py --mesher 4 --mesh=2"),
        ("train.py", "MESH=2", "train.py"),
    ],
)
def test_a_flag_is_replaced_where_the_script_has_it_and_appended_elsewhere(words, setting, after):
    name, _, value = setting.partition("=")
    assert sweep_values.program(Command(words.split()), [Setting(name, value)]).words == after.split()


def test_environment_variables_are_no_words_of_the_script():
    chosen = [Setting("MESH", "2"), Setting("--mesh", "4")]
    assert sweep_values.environment(chosen) == {"MESH": "2"}


def test_a_flag_behind_vary_is_no_option_of_ours():
    assert sweep_values.joined(["--vary", "--mesh=1,2", "-q"]) == ["--vary=--mesh=1,2", "-q"]
