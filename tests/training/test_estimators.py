"""All three façades keep to scikit-learn's manners, and say of themselves only what may be known."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from datalens import DataLens, recipes
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.data.shapes import load_shapes
from datalens.dpsgd import DPSGDClassifier, parse_classifier
from datalens.errors import ConfigError, DataError, NotFittedError
from datalens.privacy.certificate import build_certificate

MERF = {
    "num_features": 64,
    "num_steps": 3,
    "images_per_class": 2,
    "latent_dim": 4,
    "hidden_units": 16,
    "channels": 4,
}


def datalens() -> DataLens:
    return DataLens(
        recipes.shapes_quick(epsilon=10).replace(
            voting={"num_teachers": 100, "top_k": 20, "num_steps": 2, "batch_size": 4}
        )
    )


def dp_merf() -> Baseline:
    return Baseline(baseline("dp-merf", MERF, epsilon=2.0, delta=1e-4))


def dpsgd() -> DPSGDClassifier:
    return DPSGDClassifier(
        parse_classifier(
            {
                "privacy": {"epsilon": 2.0, "delta": 1e-4},
                "settings": {"model": "linear", "num_steps": 2, "batch_size": 400},
            }
        )
    )


MAKERS = {"datalens": datalens, "dp-merf": dp_merf, "dp-sgd": dpsgd}


@pytest.fixture(params=list(MAKERS))
def fresh(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]()


@pytest.fixture(scope="module", params=list(MAKERS))
def fitted(request: pytest.FixtureRequest) -> Any:
    model = MAKERS[request.param]()
    assert model.fit(load_shapes("train")) is model
    return model


def test_a_clone_has_the_same_settings_and_nothing_trained(fitted: Any) -> None:
    reason = "scikit-learn is what developers have (extra dev)"
    twin = pytest.importorskip("sklearn.base", reason=reason).clone(fitted)
    assert type(twin) is type(fitted) and twin is not fitted
    assert twin.config == fitted.config and twin.get_params() == fitted.get_params()
    assert fitted.is_fitted and not twin.is_fitted


def test_the_constructor_stores_what_it_is_given(fresh: Any) -> None:
    assert type(fresh)(fresh.config).config is fresh.config
    assert fresh.get_params(deep=False) == {"config": fresh.config}


def test_every_setting_has_a_name_and_can_be_set_by_it(fresh: Any) -> None:
    names = fresh.get_params()
    assert names["config__privacy__epsilon"] == fresh.config.privacy.epsilon
    before = fresh.config
    assert fresh.set_params(config__privacy__epsilon=3.5, config__performance__checkpoint_every=7) is fresh
    assert fresh.config.privacy.epsilon == 3.5 and fresh.config.performance.checkpoint_every == 7
    assert fresh.config.privacy.model_copy(update={"epsilon": before.privacy.epsilon}) == before.privacy
    assert before.privacy.epsilon != 3.5, "settings are frozen: whoever else has them keeps theirs"
    assert fresh.set_params(**names).config == before


def test_settings_of_a_method_have_names_too() -> None:
    model = dp_merf().set_params(config__settings__num_features=32)
    assert model.config.settings.num_features == 32 and model.config.method == "dp-merf"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"config__privacy__epsilom": 1.0}, "parameter 'config__privacy__epsilom' is unknown"),
        ({"epsilon": 1.0}, "parameter 'epsilon' is unknown; known: config, and what is in config__recipe"),
        ({"config__privacy__epsilon": -1.0}, "epsilon = -1.0"),
        ({"config": 3}, "config is of type int: give a "),
        ({"config__privacy": None}, "privacy = None: has no settings below it, and privacy__... was given"),
    ],
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(
    fresh: Any, params: dict[str, Any], said: str
) -> None:
    before = fresh.config
    with pytest.raises(ConfigError, match=re.escape(said)):
        fresh.set_params(config__privacy__delta=1e-6, **params)
    assert fresh.config is before


def test_what_only_a_training_gives_is_refused_in_one_line(fresh: Any) -> None:
    asked = [lambda: fresh.facts, lambda: fresh.ledger, lambda: fresh.classes, lambda: fresh.epsilon(1e-5)]
    asked += [lambda: fresh.spent_epsilon(1e-5)]
    if hasattr(fresh, "sample"):
        asked += [lambda: fresh.sample(1), lambda: fresh.sample_dataset(1), lambda: fresh.iter_samples(1)]
    else:
        asked += [lambda: fresh.predict(np.zeros((1, 1, 16, 16), np.uint8)), lambda: fresh.classes_]
    for ask in asked:
        with pytest.raises(NotFittedError, match="nothing was trained yet: call fit, or load a run"):
            ask()


def test_a_training_changes_no_settings() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (400, 8, 8), dtype=np.uint8), np.arange(400) % 2
    for model in (dp_merf(), dpsgd()):
        before = model.config
        model.set_params(config__privacy__num_records=400)
        if isinstance(model, DPSGDClassifier):
            model.set_params(config__settings__batch_size=100)
        before = model.config
        model.fit(images, labels, labels_are_public=True)
        assert model.config is before and not before.privacy.labels_are_public
        assert model.facts.config.privacy.labels_are_public
        certificate = build_certificate(model.ledger, model.facts.to_json(), {}, {})
        assert certificate["assumed_public"]["class_list"] == "read off the records, and declared public"
        with pytest.raises(ConfigError, match="labels are missing"):
            model.fit(images)


def test_what_was_trained_decides_whether_it_may_be_published() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dp_merf().set_params(config__privacy__insecure_seed=1).fit(load_shapes("train"))
    assert not model.is_publishable
    model.set_params(config__privacy__insecure_seed=None)
    assert not model.is_publishable and "NO: noise and secrets come from an insecure seed" in html_of(model)


def test_settings_of_the_next_training_are_not_said_of_this_one() -> None:
    model = dp_merf().fit(load_shapes("train"))
    before = repr(model)
    model.set_params(config__privacy__epsilon=0.01)
    assert repr(model) == before and "epsilon 0.01" not in before


def html_of(model: Any) -> str:
    return model._repr_html_()


def test_a_notebook_shows_state_and_both_notions(fitted: Any) -> None:
    shown = html_of(fitted)
    guarantee = build_certificate(fitted.ledger, fitted.facts.to_json(), {}, {})["guarantee"]
    rows = dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", shown))
    assert rows["state"] == "trained" and rows["to be published"].startswith("yes")
    one = float(rows["epsilon, one record added or removed"])
    other = float(rows["epsilon, one record replaced"])
    assert one == pytest.approx(guarantee["epsilon"], rel=1e-3) and one >= guarantee["epsilon"]
    assert other == pytest.approx(guarantee["replace_one"]["epsilon"], rel=1e-3)
    assert rows["epsilon spent"].split()[0] and "trained" in repr(fitted) and "\n" not in repr(fitted)


def test_a_notebook_shows_a_plan_before_the_training(fresh: Any) -> None:
    shown = html_of(fresh)
    assert "nothing trained yet" in shown and f"at most {fresh.config.privacy.epsilon:g}" in shown
    assert repr(fresh).endswith("nothing trained yet")


def test_names_that_look_like_html_are_shown_as_text() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (400, 8, 8), dtype=np.uint8), np.arange(400) % 2
    model = dp_merf().set_params(config__privacy__num_records=400)
    model.fit(images, labels, classes=["<script>alert(1)</script>", 'a"&b'])
    shown = html_of(model)
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "a&quot;&amp;b" in shown


def test_nothing_private_is_shown() -> None:
    """Two data sets of one declared size, of which one has forty records fewer: not a byte differs."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (400, 8, 8), dtype=np.uint8), np.arange(400) % 2
    shown = []
    for count in (400, 360):
        model = dp_merf().set_params(config__privacy__num_records=400)
        model.fit(images[:count], labels[:count], classes=2)
        shown.append(html_of(model) + repr(model))
    assert shown[0] == shown[1]


def test_a_data_set_of_samples_has_the_samples() -> None:
    model = dp_merf().fit(load_shapes("train"))
    images, labels = model.sample(10, seed=3)
    drawn = model.sample_dataset(10, seed=3)
    assert len(drawn) == 10 and drawn.classes == model.classes
    batch, numbers = next(iter(DataLoader(drawn, batch_size=10)))
    assert batch.dtype == torch.float32 and batch.min() >= 0 and batch.max() <= 1
    np.testing.assert_array_equal((batch * 255).round().to(torch.uint8).numpy(), images)
    assert numbers.tolist() == labels.tolist()


def test_a_classifier_scores_what_it_predicts() -> None:
    model = dpsgd().fit(load_shapes("train"))
    test = load_shapes("test")
    found = model.predict(test.images)
    assert set(found) <= set(model.classes_) and len(model.classes_) == len(model.classes)
    assert model.score(test.images, test.labels) == np.mean(found == test.labels) == model.accuracy(test)
    with pytest.raises(DataError, match="give one for each"):
        model.score(test.images, test.labels[:-1])


def test_notes_are_told_before_the_first_step() -> None:
    rng = np.random.default_rng(0)
    images = np.repeat(rng.integers(0, 256, (200, 8, 8), dtype=np.uint8), 2, axis=0)
    for model in (dp_merf(), dpsgd()):
        if isinstance(model, DPSGDClassifier):
            model.set_params(config__settings__batch_size=100)
        model.set_params(config__privacy__num_records=400)
        told: list[Any] = []
        model.fit(images, np.arange(400) % 2, classes=2, tell=told.append, tell_note=told.append)
        assert isinstance(told[0], str) and "repeat another exactly" in told[0] and len(told) > 1
        assert not any(isinstance(item, str) for item in told[len(model.notes) :])
