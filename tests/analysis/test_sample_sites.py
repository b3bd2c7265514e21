"""Loops of a model that make a sample site in each iteration."""

import pytest

from jaxscope.analysis.sample_sites import loop_of_sites

MODEL = """
import numpyro
def model(data):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    for j, scores in enumerate(data):
        theta = numpyro.sample(f"theta_{j}", dist.Normal(mu, 1))
        numpyro.sample(f"score_{j}", dist.Normal(theta, 1), obs=scores)
"""


@pytest.mark.parametrize(
    ("change", "line", "found"),
    [
        (("", ""), 6, (5, "enumerate(data)", None)),
        (("", ""), 4, None),
        (('f"theta_{j}"', '"theta_%d" % j'), 6, (5, "enumerate(data)", None)),
        (("import numpyro", "from numpyro import sample"), 6, None),  # another ``numpyro``
        (("{j}", "{mu}"), 6, None),  # the name is the same in each iteration
        (("dist.Normal(mu, 1)", "dist.Normal(theta, 1)"), 6, (5, "enumerate(data)", "theta")),
        (
            ("theta = n", "if j:\n            mu = theta\n        theta = n"),
            8,
            (5, "enumerate(data)", "theta"),
        ),
        (
            ("theta = numpyro.sample", "kept.append(kept[-1])\n        theta = numpyro.sample"),
            7,
            (5, "enumerate(data)", "kept"),
        ),
        (
            ("theta = numpyro.sample", "total = total + j\n        theta = numpyro.sample"),
            7,
            (5, "enumerate(data)", None),
        ),
        (
            ("theta = numpyro.sample", "mu = mu + j\n        theta = numpyro.sample"),
            7,
            (5, "enumerate(data)", "mu"),
        ),
    ],
)
def test_a_loop_that_makes_sites_is_found(change, line, found):
    assert loop_of_sites(MODEL.replace(*change), line) == found


HELPER = """
import numpyro
def site(name, mean):
    return numpyro.sample(name, dist.Normal(mean, 1))
def model(data):
    for j in range(9):
        site(f"theta_{j}", 0.0)
"""


def test_a_helper_that_makes_the_site_is_followed():
    assert loop_of_sites(HELPER, 7) == (6, "range(9)", None)
    assert loop_of_sites(HELPER.replace("numpyro.sample(name", "print(name"), 7) is None


def test_a_scope_that_names_the_sites_of_a_helper_counts():
    text = HELPER.replace(
        'site(f"theta_{j}", 0.0)', 'with numpyro.handlers.scope(prefix=f"{j}"): site("a", 0)'
    )
    assert loop_of_sites(text, 7) == (6, "range(9)", None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('z = [numpyro.sample(f"z_{i}", d) for i in range(n)]', (4, "range(n)", None)),
        ('z = {i: numpyro.sample("z_" + str(i), d) for i in range(n)}', (4, "range(n)", None)),
        ('z = [numpyro.sample("z", d) for i in range(n)]', None),
        ("z = [d(i) for i in range(n)]", None),
    ],
)
def test_a_comprehension_that_makes_sites_is_found(text, found):
    assert loop_of_sites(f"import numpyro\ndef model(n):\n    d = dist.Normal()\n    {text}\n", 4) == found


def test_the_name_of_a_site_may_be_in_a_variable():
    text = MODEL.replace(
        'theta = numpyro.sample(f"theta_{j}"', 'name = f"theta_{j}"; theta = numpyro.sample(name'
    )
    assert loop_of_sites(text.replace("score_{j}", "score"), 6) == (5, "enumerate(data)", None)


def test_a_file_that_cannot_be_parsed_has_no_such_loop():
    assert loop_of_sites("for j in (:", 1) is None and loop_of_sites(None, 1) is None
