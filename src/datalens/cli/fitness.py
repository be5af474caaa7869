"""What must be said last about a run that is not fit for publication, or not finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from datalens.privacy.events import NoiseKind

if TYPE_CHECKING:
    from datalens.baselines.model import Baseline
    from datalens.baselines.registry import BaselineConfig
    from datalens.dpsgd.classifier import DPSGDClassifier
    from datalens.dpsgd.facts import ClassifierConfig
    from datalens.training.config import Config
    from datalens.training.synthesizer import DataLens


def unfit_line(config: Config | BaselineConfig | ClassifierConfig) -> str | None:
    """The line that ends a command about such a run; None where the guarantee may be published."""
    privacy = config.privacy
    if privacy.as_published:
        return (
            f"NO GUARANTEE: {_published(config)} as published, whose account does not hold; this release is not fit "
            "for publication"
        )
    if privacy.noise is NoiseKind.NONE:
        return "NO GUARANTEE: trained without noise; this release is not fit for publication"
    reasons = []
    if privacy.insecure_seed is not None:
        reasons.append("its noise comes from an insecure seed")
    if privacy.noise is NoiseKind.CONTINUOUS:
        reasons.append("its noise is floating point")
    return f"NOT FIT FOR PUBLICATION: {' and '.join(reasons)}; for experiments only" if reasons else None


def _published(config: Config | BaselineConfig | ClassifierConfig) -> str:
    """The name of what was run as published."""
    from datalens.training.config import Config

    return str(config.voting.mechanism) if isinstance(config, Config) else config.method


def steps_charged(model: DataLens) -> int:
    """Generator steps that were charged, lost ones among them; scores are no steps, a tuned run has all of them."""
    from datalens.training.terms import next_step
    from datalens.training.tuned import is_tuned

    return steps_planned(model) if is_tuned(model.ledger) else next_step(model.ledger.lines)


def steps_planned(model: DataLens) -> int:
    """Steps that the run is to take, by its ledger."""
    from datalens.training.terms import terms_in_force

    return terms_in_force(model.ledger).num_steps


def run_summary(model: DataLens | Baseline | DPSGDClassifier) -> dict[str, Any]:
    """What a run promises and spent, for the JSON of every verb."""
    from datalens.privacy.budget import authorisations
    from datalens.training.synthesizer import DataLens

    config, facts = model.facts.config, model.facts
    authorised = authorisations(model.ledger)[-1].authorisation
    return {
        "recipe": config.recipe,
        "is_private": config.privacy.is_private,
        "publishable": model.is_publishable,
        "epsilon_authorised": authorised.guarantee(),
        "epsilon_spent": model.spent_epsilon(config.privacy.delta),
        "delta": config.privacy.delta,
        "accountant": str(config.privacy.accountant),
        "noise": str(config.privacy.noise),
        **(_of_datalens(model) if isinstance(model, DataLens) else _of_method(model)),
        "classes": list(facts.classes),
        "image_shape": list(facts.image_shape),
    }


def _of_method(model: Baseline | DPSGDClassifier) -> dict[str, Any]:
    from datalens.privacy import promises

    config = model.config
    if config.method not in promises.CLASSIFIERS:
        return {"method": config.method}
    return {"method": config.method, **_of_classifier(cast("DPSGDClassifier", model))}


def _of_classifier(model: DPSGDClassifier) -> dict[str, Any]:
    from datalens.training.terms import next_step

    settings, (planned,) = model.config.settings, model.ledger.header["mechanism"]["releases"]
    return {
        "training": str(settings.training),
        "keep": settings.keep,
        "select_by": str(settings.select_by),
        "noise_multiplier": planned["event"]["noise_multiplier"],
        "sampling_rate": settings.batch_size / model.facts.num_records,
        "steps": next_step(model.ledger.lines),
        "num_steps": model.facts.num_steps,
    }


def _of_datalens(model: DataLens) -> dict[str, Any]:
    from datalens.training.terms import terms_in_force

    return {
        "noise_stddev": terms_in_force(model.ledger).noise_stddev,
        "steps": steps_charged(model),
        "num_steps": steps_planned(model),
        "num_teachers": model.config.voting.num_teachers,
    }
