"""The engine: Opacus's ``PrivacyEngine`` with ``keep``, and with refusals where its promise would not hold."""

from __future__ import annotations

import math
import warnings
from typing import Any

from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from torch import nn, optim
from torch.utils.data import DataLoader

from datalens.dpsgd import refusals
from datalens.dpsgd.checkpoints import read_checkpoint, without_wrappers
from datalens.dpsgd.integer import IntegerTopAggOptimizer
from datalens.dpsgd.lots import LotsOfAllRanks, SecretLots, with_lots
from datalens.dpsgd.method import NoiseForm, Rule, check_noise_multiplier, chosen
from datalens.dpsgd.optimizer import DistributedTopAggOptimizer, TopAggOptimizer
from datalens.errors import PrivacyWarning
from datalens.methods.sgd_kinds import Method, SelectBy
from datalens.noise import make_noise
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.calibration import noise_for
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent, times
from datalens.privacy.gaussian import check_delta


class TopAggPrivacyEngine(PrivacyEngine):
    """Makes a training private, as Opacus's engine does; ``keep`` says how much of a gradient stays.

    Neighbours differ by one record added or removed. A step releases the sum of what stays of each record's clipped
    gradient, with Gaussian noise of ``noise_multiplier`` times the longest that one record's part can be. So epsilon
    depends on the noise multiplier, the sampling rate and the number of steps, as without compression, and
    ``keep=1`` is plain Opacus bit for bit on the same randomness.

    Args:
        accountant: ``prv``, ``rdp`` or ``gdp`` of Opacus; the integer form has the product's own RDP instead.
        secure_mode: refused; see ``noise="integer"`` of :meth:`make_private`.

    Raises:
        ConfigError: ``secure_mode``.

    Source: Wang et al. 2021, section 4.4 and Appendix A; proofs in ``docs/dpsgd.md``.
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = False) -> None:
        refusals.refuse_secure_mode(secure_mode)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Secure RNG turned off")  # its remedy is the mode refused above
            super().__init__(accountant=accountant)
        self._rule, self._form = Rule(Method.GM_DP), NoiseForm.FLOAT
        self._dim = 1

    def make_private(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        module: nn.Module,
        optimizer: optim.Optimizer,
        data_loader: DataLoader[Any],
        noise_multiplier: float,
        max_grad_norm: float,
        keep: float = 1.0,
        method: str = Method.TOPAGG,
        select_by: str = SelectBy.NORM,
        noise: str = NoiseForm.FLOAT,
        poisson_sampling: bool = True,
        clipping: str = "flat",
        noise_generator: Any = None,
        grad_sample_mode: str = "hooks",
        batch_first: bool = True,
        loss_reduction: str = "mean",
        wrap_model: bool = True,
        rand_on_empty: bool = False,
    ) -> Any:
        """Module, optimiser and loader, private from here on.

        Args:
            keep: share of each record's squared norm (or of the coordinates) that stays, above 0, at most 1.
            method: a name of :class:`~datalens.dpsgd.method.Method`.
            select_by: what ``keep`` is a share of: ``norm``, ``tensor-norm`` or ``dimension``.
            noise: ``float``, as Opacus draws it, or ``integer``, which can be published.
            others: as Opacus has them.

        Raises:
            ConfigError: a setting out of range, or one under which the guarantee would not hold.
        """
        rule = Rule(chosen(Method, method, "method"), keep, chosen(SelectBy, select_by, "select_by"))
        form = chosen(NoiseForm, noise, "noise")
        noise_multiplier = check_noise_multiplier(noise_multiplier, rule.method)
        max_grad_norm = refusals.check_setup(module, data_loader, max_grad_norm, clipping, grad_sample_mode)
        if form is NoiseForm.INTEGER:
            refusals.refuse_for_integers(module, rule, poisson_sampling, noise_generator)
        if not rule.method.is_private:
            warnings.warn(PrivacyWarning(f"{rule.method} adds no noise: it protects nobody"), stacklevel=2)
        elif not poisson_sampling:
            words = "poisson_sampling=False: epsilon assumes a coin for each record, which your lots have not"
            warnings.warn(PrivacyWarning(words), stacklevel=2)
        self._rule, self._form = rule, form
        return super().make_private(
            module=module,
            optimizer=optimizer,
            data_loader=data_loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            batch_first=batch_first,
            loss_reduction=loss_reduction,
            poisson_sampling=poisson_sampling,
            clipping=clipping,
            noise_generator=noise_generator,
            grad_sample_mode=grad_sample_mode,
            wrap_model=wrap_model,
            rand_on_empty=rand_on_empty,
        )

    def make_private_with_epsilon(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        module: nn.Module,
        data_loader: DataLoader[Any],
        target_epsilon: float,
        target_delta: float,
        epochs: int,
        noise: str = NoiseForm.FLOAT,
        **others: Any,
    ) -> Any:
        """As :meth:`make_private`, with the noise that makes so many epochs cost at most ``target_epsilon``.

        Raises:
            ConfigError: as :meth:`make_private`; a budget already spent on; a target that no noise meets; no step.
        """
        refusals.refuse_second_start(len(self.accountant))
        steps = refusals.check_target(target_epsilon, target_delta, epochs, data_loader)
        rate = 1 / len(data_loader)
        if chosen(NoiseForm, noise, "noise") is NoiseForm.INTEGER:
            dim = sum(p.numel() for p in module.parameters() if p.requires_grad)
            event = lambda multiplier: self._event(multiplier, rate, dim)  # noqa: E731
            multiplier = noise_for(event, steps, target_epsilon, target_delta, AccountantKind.RDP)
        else:
            multiplier = get_noise_multiplier(
                target_epsilon=target_epsilon,
                target_delta=target_delta,
                sample_rate=rate,
                steps=steps,
                accountant=self.accountant.mechanism(),
            )
        return self.make_private(
            module=module, data_loader=data_loader, noise_multiplier=multiplier, noise=noise, **others
        )

    def get_epsilon(self, delta: float) -> float:
        """What all steps so far cost, add-or-remove one record; infinite if any of them had no noise.

        Raises:
            ConfigError: delta outside (0, 1).
        """
        check_delta(delta)
        history = self.accountant.history
        if any(multiplier == 0 for multiplier, _, _ in history):
            return math.inf
        if self._form is NoiseForm.FLOAT or not history:
            return super().get_epsilon(delta) if history else 0.0
        events = [times(self._event(m, rate, self._dim), count) for m, rate, count in history]
        return Accountant(AccountantKind.RDP).epsilon(events, delta)

    def validate(self, *, module: nn.Module, optimizer: Any, data_loader: Any) -> None:
        """Refuse networks that mix the records of a batch, by the path of the layer."""
        refusals.refuse_mixing_layers(module)

    def save_checkpoint(self, *, module: nn.Module, **others: Any) -> None:
        """As Opacus, with names of weights that carry no wrapper: a plain network loads them."""
        super().save_checkpoint(module=without_wrappers(module), **others)

    def load_checkpoint(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, path: Any, module: nn.Module, optimizer: DPOptimizer | None = None
    ) -> dict[str, Any]:
        """Go on from :meth:`save_checkpoint`, with the budget spent until then. Runs no code that a file may hold.

        Raises:
            CheckpointError: a file that is damaged, or has no account of what was spent; nothing was changed.
        """
        return read_checkpoint(path, module, self.accountant, optimizer)

    def _event(self, multiplier: float, rate: float, dim: int) -> PoissonGaussianEvent:
        """One step in whole numbers."""
        return IntegerTopAggOptimizer.event_of(multiplier, rate, dim, make_noise(NoiseKind.ROUNDED))

    def _prepare_model(self, module: nn.Module, **others: Any) -> Any:
        """As Opacus; a record that comes in two backward passes would count twice, so they are refused in any lot."""
        prepared = super()._prepare_model(module, **others)
        prepared.forbid_grad_accumulation()
        refusals.refuse_gradients_of_gradients(prepared)
        return prepared

    def _prepare_optimizer(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, optimizer: optim.Optimizer, distributed: bool, noise_generator: Any = None, **others: Any
    ) -> TopAggOptimizer:
        original = optimizer.original_optimizer if isinstance(optimizer, DPOptimizer) else optimizer
        for word in ("clipping", "grad_sample_mode"):
            others.pop(word)
        settings = {**others, "rule": self._rule, "generator": noise_generator}
        if self._form is NoiseForm.INTEGER:
            made = IntegerTopAggOptimizer(original, noise=make_noise(NoiseKind.ROUNDED), **settings)
            self._dim = made.dim
            return made
        return (DistributedTopAggOptimizer if distributed else TopAggOptimizer)(original, **settings)

    def _prepare_data_loader(self, data_loader: DataLoader[Any], **others: Any) -> DataLoader[Any]:
        loader = super()._prepare_data_loader(data_loader, **others)
        if not others["poisson_sampling"]:
            return loader
        lots: Any = loader.batch_sampler
        rate = lots.sample_rate
        if others["distributed"]:
            lots = LotsOfAllRanks(total_size=lots.total_size, sample_rate=rate, generator=lots.generator)
            return with_lots(loader, lots)
        if self._form is NoiseForm.INTEGER:
            lots = SecretLots(num_samples=lots.num_samples, sample_rate=rate, steps=lots.steps)
            return with_lots(loader, lots)
        return loader
