"""Does the audit of baselines see anything? Sound ones must pass, and every broken one must be caught."""

from __future__ import annotations

from collections.abc import Callable

from datalens.audit.baseline_run import audit_baseline_subject
from datalens.audit.baseline_sabotage import BASELINE_SABOTAGES
from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.findings import Finding, Report
from datalens.audit.self_test import SOUND, told
from datalens.baselines.dp_gan import DPGan, DPGanSettings
from datalens.baselines.dp_merf import DPMerf, MerfSettings
from datalens.baselines.g_pate import GPate, GPateSettings
from datalens.baselines.gs_wgan import GSWgan, GSWganSettings
from datalens.baselines.judged import Judged, JudgedSettings
from datalens.baselines.method import MethodSettings
from datalens.baselines.moments import Moments, MomentsSettings
from datalens.baselines.pate_gan import PateGan, PateGanSettings
from datalens.errors import ConfigError
from datalens.methods.method import PublicSize
from datalens.training.sections import Privacy

TRIALS = 20_000
DRAWS = 60_000
PRIVACY = Privacy(epsilon=4.0)
SIZE = PublicSize(200, (1, 8, 8), 4)
SETTINGS: dict[str, MethodSettings] = {
    DPMerf.name: MerfSettings(num_features=64),
    Moments.name: MomentsSettings(low_frequencies=3, rank=4),
    Judged.name: JudgedSettings(num_steps=5, low_frequencies=3, rank=4, judge_size=20),
    PateGan.name: PateGanSettings(num_teachers=20, batch_size=16, num_steps=20),
    GPate.name: GPateSettings(num_teachers=20, batch_size=4, num_projected=4, num_steps=20),
    GSWgan.name: GSWganSettings(batch_size=4, critic_steps=1, critic_channels=2, num_steps=20),
    DPGan.name: DPGanSettings(batch_size=40, critic_steps=2, critic_channels=2, num_steps=20),
}
"""Small runs to break. DP-GAN needs Opacus and is left out without it."""


def baseline_self_test_subject(method: str, privacy: Privacy = PRIVACY) -> BaselineSubject:
    """A small product to break.

    Raises:
        ConfigError: what the method needs is not installed.
    """
    return BaselineSubject.of(SETTINGS[method], privacy, SIZE)


def baseline_self_test(
    methods: tuple[str, ...] = tuple(SETTINGS), tell: Callable[[Finding], None] = lambda _: None
) -> Report:
    """Audit each sound baseline, which must pass, and every broken one, which must not.

    Args:
        methods: names; one that has no guarantee is passed over.
        tell: hears of every finding as it is made.
    """
    findings: list[Finding] = []
    for method in (name for name in methods if name in SETTINGS):
        try:
            sound = baseline_self_test_subject(method)
        except ConfigError:
            continue
        broken = {name: sabotage for name, (of, sabotage) in BASELINE_SABOTAGES.items() if of == method}
        for name, sabotage in {SOUND: lambda subject: subject, **broken}.items():
            report = Report(tuple(audit_baseline_subject(sabotage(sound), TRIALS, DRAWS)))
            findings.append(told(f"{method}, {name}", report, wanted=name != SOUND))
            tell(findings[-1])
    return Report(tuple(findings))
