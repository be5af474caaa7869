"""What ``datalens evaluate`` found, in lines and one table for people."""

from __future__ import annotations

from typing import Any

from datalens.cli.output import Output


def say_scores(answer: dict[str, Any], output: Output, *, copies_kept: bool) -> None:
    """Accuracies, then the table of scores on features, then copies, then what may be done with all this.

    Args:
        answer: The report; without ``copies`` where these are private.
        output: Who says it.
        copies_kept: Whether a copy check was made whose result is only in the kept file.
    """
    kind = "real" if answer["samples"]["source"] == "named" else "synthetic"
    for classifier, result in answer.get("utility", {}).items():
        output.say(
            f"accuracy {result['last_accuracy']:.2%} (last of {result['epochs']} epochs; {classifier} "
            f"trained on {result['num_train']} {kind} images, tested on {result['num_test']} real ones)"
        )
        output.say(
            f"best epoch {result['best_epoch_accuracy']:.2%} (epoch {result['best_epoch']}, chosen on the test "
            "set, as the paper's code prints; not for comparison)"
        )
    if "features" in answer:
        _say_features(answer["features"], output)
    if "copies" in answer:
        _say_copies(answer["copies"], output)
    if copies_kept:
        output.say("copy check: its result is in the kept file alone")
    private = "" if answer["measured_on_public_data"] else "a score on people's data: not to be published"
    if "kept_in" in answer:
        output.say(f"kept in {answer['kept_in']}" + (f"; {private}" if private else ""))
    elif private:
        output.say(private)
    released = answer.get("released")
    if released is not None:
        count = released.get("noisy_right", released.get("right"))
        noise = "" if released["data_is_public"] else f" with noise of {released['noise_stddev']:g}, charged"
        output.say(f"{count} right{noise}: in {answer['released_in']}")


def _say_features(facts: dict[str, Any], output: Output) -> None:
    rows = [["synthetic", *_cells(facts["synthetic"])]]
    if facts["real_test"] is not None:
        rows.append(["real test set", *_cells(facts["real_test"])])
    output.table(["images", "number", *_heads(facts["synthetic"])], rows)
    accuracy = facts["accuracy_on_real_test"]
    known = "" if accuracy is None else f", {accuracy:.2%} right on the real test images"
    output.say(
        f"features: {facts['network']}, weights {facts['network_digest'][:12]}{known}; distances to "
        f"{facts['reference']}; resize {facts['resize']}; grey repeated {facts['channel_repeat']}x"
    )


def _heads(scores: dict[str, Any]) -> list[str]:
    names = {"inception_score": "Inception Score", "fid": "FID", "kid": "KID"}
    return [names[name] for name in names if name in scores]


def _cells(scores: dict[str, Any]) -> list[str]:
    cells = [str(scores["num_images"])]
    for name in ("inception_score", "kid"):
        if name in scores:
            cells.append(f"{scores[name]['mean']:.4g} +- {scores[name]['stddev']:.2g}")
    if "fid" in scores:
        cells.insert(2 if "inception_score" in scores else 1, f"{scores['fid']['value']:.4g}")
    return cells


def _say_copies(check: dict[str, Any], output: Output) -> None:
    output.say(
        f"copies: {check['num_exact_copies']} of {check['num_samples']} samples equal a training image; "
        f"{check['share_closer_to_train']:.2%} lie nearer to training than to test images "
        f"(50% where none are copied; z {check['z_score']:.1f})"
    )


def few(names: tuple[str, ...]) -> str:
    """The first six names, and whether there are more."""
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
