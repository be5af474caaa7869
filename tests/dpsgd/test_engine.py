"""The engine: plain Opacus where nothing is dropped, the right noise where something is, and every refusal."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from dpsgd_scene import network, plain_engine, prepared, records, topagg_engine, train, weights
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from datalens.compression.norm_topk import by_norm, clip_factor, norm_topk
from datalens.dpsgd import TopAggPrivacyEngine
from datalens.errors import CheckpointError, ConfigError, PrivacyWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook is firing:UserWarning", "ignore:Optimal order is the:UserWarning"
)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize("physical", [None, 4])
def test_keep_one_equals_plain_opacus_bit_for_bit(physical: int | None) -> None:
    results = []
    for engine, settings in ((plain_engine(), {}), (topagg_engine(), {"keep": 1.0})):
        module, optimizer, loader = prepared(engine, noise_generator=seeded(), **settings)
        if physical is None:
            train(module, optimizer, loader, epochs=2)
        else:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
            ) as parts:
                train(module, optimizer, parts, epochs=2)
        results.append((weights(module), engine.get_epsilon(1e-5)))
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"keep": 0.64}, 0.8),
        ({"keep": 0.64, "select_by": "tensor-norm"}, 0.8),
        ({"keep": 0.64, "method": "topk-gm-dp"}, 1.0),
        ({"keep": 0.64, "select_by": "dimension"}, 1.0),
        ({"keep": 0.64, "method": "gm-dp"}, 1.0),
    ],
)
def test_noise_is_measured_by_what_a_record_can_add(settings: dict[str, Any], share: float) -> None:
    """The same draws, scaled: with no gradients at all the step is noise and nothing else."""
    drawn = []
    for engine, more in ((plain_engine(), {}), (topagg_engine(), settings)):
        _module, optimizer, _loader = prepared(engine, noise_generator=seeded(), max_grad_norm=2.0, **more)
        for p in optimizer.params:
            p.grad_sample = torch.zeros(4, *p.shape)
        optimizer.clip_and_accumulate()
        optimizer.add_noise()
        drawn.append(torch.cat([p.grad.flatten() for p in optimizer.params]))
    torch.testing.assert_close(drawn[1], drawn[0] * share)


def test_sum_is_that_of_clipped_and_selected_rows() -> None:
    _module, optimizer, _loader = prepared(topagg_engine(), keep=0.7, max_grad_norm=0.5)
    for p in optimizer.params:
        p.grad_sample = torch.randn(9, *p.shape, generator=seeded())
    row_RD = torch.cat([p.grad_sample.flatten(1) for p in optimizer.params], 1)
    kept = by_norm(row_RD.square(), 0.7)
    expected = (row_RD * kept.mask_RD * clip_factor(kept, 0.5, math.sqrt(0.7) * 0.5)[:, None]).sum(0)
    optimizer.clip_and_accumulate()
    torch.testing.assert_close(torch.cat([p.summed_grad.flatten() for p in optimizer.params]), expected)
    with pytest.raises(ValueError, match="zero_grad"):  # R37: the same gradients never count twice
        optimizer.clip_and_accumulate()


def test_by_tensor_norm_every_parameter_is_heard() -> None:
    """One parameter far larger than the others: over the whole gradient it takes all that is kept."""
    kept = {}
    for select_by in ("norm", "tensor-norm"):
        _module, optimizer, _loader = prepared(topagg_engine(), keep=0.7, select_by=select_by)
        for place, p in enumerate(optimizer.params):
            p.grad_sample = torch.randn(9, *p.shape, generator=seeded()) * (1.0 if place == 0 else 1e-4)
        parts = [p.grad_sample.flatten(1) for p in optimizer.params]
        optimizer.clip_and_accumulate()
        kept[select_by] = [bool(p.summed_grad.any()) for p in optimizer.params]
        if select_by == "tensor-norm":
            row_RD = torch.cat([norm_topk(part, 0.7) for part in parts], 1)
            row_RD *= torch.cat(parts, 1).norm(dim=1, keepdim=True).clamp(min=1).reciprocal()
            summed_D = torch.cat([p.summed_grad.flatten() for p in optimizer.params])
            torch.testing.assert_close(summed_D, row_RD.sum(0), rtol=1e-4, atol=1e-8)
    assert kept["norm"] == [True] + [False] * (len(kept["norm"]) - 1)
    assert kept["tensor-norm"][0] and sum(kept["tensor-norm"]) > 1


def test_physical_batches_change_nothing() -> None:
    results = []
    for physical in (100, 3):
        module, optimizer, loader = prepared(topagg_engine(), keep=0.8, noise_generator=seeded())
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
        ) as parts:
            train(module, optimizer, parts)
        results.append(weights(module))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("physical", [None, 4])
@pytest.mark.parametrize("settings", [{"keep": 0.8}, {"keep": 0.8, "noise": "integer"}])
def test_r13_empty_lots_are_steps(physical: int | None, settings: dict[str, Any]) -> None:
    """A hundred records, one expected in a lot: an empty lot still adds noise, is charged and moves weights."""
    engine = topagg_engine()
    module, optimizer, loader = prepared(engine, number=100, batch_size=1, **settings)
    moved, sizes = 0, []
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=physical or 1000, optimizer=optimizer
    ) as parts:
        for images, labels in parts:
            before = weights(module)
            optimizer.zero_grad()
            functional.cross_entropy(module(images), labels).backward()
            optimizer.step()
            moved += not torch.equal(before, weights(module))
            sizes.append(len(images))
    assert 0 in sizes
    assert moved == len(loader.batch_sampler) == sum(count for _, _, count in engine.accountant.history)


@pytest.mark.parametrize("keep", [1.0, 0.8])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e38])
def test_r16_a_record_with_a_bad_gradient_adds_nothing(keep: float, bad: float) -> None:
    engine = topagg_engine()
    module, optimizer, _loader = prepared(engine, keep=keep)
    images, labels = records(5)[:]
    images[2, 0] = bad
    optimizer.zero_grad()
    functional.cross_entropy(module(images), labels).backward()
    optimizer.step()
    assert torch.isfinite(weights(module)).all()
    assert len(engine.accountant) == 1


@pytest.mark.parametrize("norm", [math.inf, 0, -1, math.nan, "1", [1.0, 1.0]])
def test_r16_bad_clipping_norms_are_refused(norm: Any) -> None:
    with pytest.raises(ConfigError, match="max_grad_norm"):
        prepared(topagg_engine(), max_grad_norm=norm)


def test_r26_lots_as_large_as_the_data() -> None:
    engine = topagg_engine()
    module, optimizer, loader = prepared(engine, number=10, batch_size=16, keep=0.8, noise_multiplier=2.0)
    assert train(module, optimizer, loader, epochs=5) == 5
    assert 4.98 <= engine.get_epsilon(1e-5) <= 6.0
    network_ = network()
    loader = DataLoader(records(10), batch_size=16, drop_last=True)
    with pytest.raises(ConfigError, match="no batch: 10 records"):
        topagg_engine().make_private(
            module=network_,
            optimizer=torch.optim.SGD(network_.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )


@pytest.mark.parametrize("noise", ["float", "integer"])
def test_r30_lots_vary_like_coins(noise: str) -> None:
    _module, _optimizer, loader = prepared(
        topagg_engine(), number=1000, batch_size=100, keep=0.8, noise=noise
    )
    sizes = [len(lot) for _ in range(20) for lot in loader.batch_sampler]
    assert len(sizes) >= 180
    mean, variance = torch.tensor(sizes).double().mean().item(), torch.tensor(sizes).double().var().item()
    assert abs(mean - 100) < 4 and 55 < variance < 140


def test_r30_other_lots_are_called_an_assumption() -> None:
    with pytest.warns(PrivacyWarning, match="epsilon assumes"):
        prepared(topagg_engine(), keep=0.8, poisson_sampling=False)


@pytest.mark.parametrize(
    "layer",
    [nn.BatchNorm2d(2), nn.SyncBatchNorm(2), nn.InstanceNorm2d(2, affine=True, track_running_stats=True)],
)
def test_r35_layers_that_mix_records_are_refused_by_their_path(layer: nn.Module) -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(layer))
    with pytest.raises(ConfigError, match=rf"1\.0 \({type(layer).__name__}\)"):
        prepared(topagg_engine(), module=module, keep=0.8)


def scored(module: Any, images: torch.Tensor) -> torch.Tensor:
    """A critic's mean score of images: the first of the network's outputs."""
    return module(images)[:, 0].mean()


MODES = ["hooks", "functorch", "ew"]


@pytest.mark.parametrize("poisson", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:poisson_sampling=False")
def test_r37_gradients_of_two_backward_passes_are_refused(mode: str, poisson: bool) -> None:
    """In lots of any kind: a record that comes twice would add twice what the noise is measured by."""
    module, optimizer, _loader = prepared(
        topagg_engine(), keep=0.8, grad_sample_mode=mode, poisson_sampling=poisson
    )
    real, _ = records(5)[:]
    optimizer.zero_grad()
    scored(module, real).backward()
    with pytest.raises((ValueError, RuntimeError), match="accumulat"):
        scored(module, -real).backward()


@pytest.mark.parametrize("mode", MODES)
def test_r37_gradients_are_those_of_single_records(mode: str) -> None:
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8, grad_sample_mode=mode)
    images, labels = records(5)[:]
    functional.cross_entropy(module(images), labels).backward()
    got = torch.cat([p.grad_sample.flatten(1) for p in optimizer.params], 1)
    for row, image, label in zip(got, images, labels, strict=True):
        alone = network()
        functional.cross_entropy(alone(image[None]), label[None]).backward()
        torch.testing.assert_close(row, torch.cat([p.grad.flatten() for p in alone.parameters()]))


@pytest.mark.parametrize("mode", MODES)
def test_r37_a_critic_between_steps_of_its_generator_has_the_gradients_of_its_own_pass(mode: str) -> None:
    """Real and generated images in one backward pass, after a pass for the generator: rows of single pairs."""
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8, grad_sample_mode=mode)
    real, _ = records(5)[:]
    drawn = real.flip(1).requires_grad_()
    scored(module, drawn).backward()  # the generator's
    optimizer.zero_grad()
    (scored(module, drawn.detach()) - scored(module, real)).backward()
    got = torch.cat([p.grad_sample.flatten(1) for p in optimizer.params], 1)
    for row, true, false in zip(got, real, drawn.detach(), strict=True):
        alone = network()
        (scored(alone, false[None]) - scored(alone, true[None])).backward()
        torch.testing.assert_close(row, torch.cat([p.grad.flatten() for p in alone.parameters()]))


@pytest.mark.parametrize("mode", MODES)
def test_r37_gradients_of_a_lot_do_not_reach_the_next_step(mode: str) -> None:
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8, grad_sample_mode=mode)
    images, _ = records(5)[:]
    scored(module, images).backward()
    optimizer.step()
    with pytest.raises((ValueError, RuntimeError), match="grad"):
        scored(module, images).backward()
        optimizer.step()
    with pytest.raises(ValueError, match="zero_grad"):
        optimizer.step()


@pytest.mark.parametrize("penalty_first", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_r37_a_gradient_penalty_is_refused(mode: str, penalty_first: bool) -> None:
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8, grad_sample_mode=mode)
    real, _ = records(5)[:]
    before = weights(module)

    def penalty() -> torch.Tensor:
        between = (0.5 * real).requires_grad_()
        (grad,) = torch.autograd.grad(scored(module, between), between, create_graph=True)
        return (grad.norm(dim=1) - 1).square().mean()

    def distance() -> torch.Tensor:
        return scored(module, -real) - scored(module, real)

    optimizer.zero_grad()
    with pytest.raises(ConfigError, match="WGAN-GP"):
        first, second = (penalty, distance) if penalty_first else (distance, penalty)
        (first() + second()).backward()
        optimizer.step()
    assert torch.equal(before, weights(module))


def test_r37_a_network_given_back_may_have_penalties_again() -> None:
    module, _optimizer, _loader = prepared(topagg_engine(), keep=0.8)
    plain = module.to_standard_module()
    images = records(5)[:][0].requires_grad_()
    (grad,) = torch.autograd.grad(scored(plain, images), images, create_graph=True)
    grad.norm(dim=1).sum().backward()
    assert all(p.grad is not None for p in plain[0].parameters() if p.dim() > 1)


@pytest.mark.parametrize("noise", ["float", "integer"])
def test_r01_a_resumed_training_has_spent_what_the_straight_one_has(tmp_path: Path, noise: str) -> None:
    straight = topagg_engine()
    train(*prepared(straight, keep=0.8, noise=noise), epochs=2)
    first, second = topagg_engine(), topagg_engine()
    module, optimizer, loader = prepared(first, keep=0.8, noise=noise)
    train(module, optimizer, loader)
    first.save_checkpoint(path=tmp_path / "half.pt", module=module, optimizer=optimizer)
    again, optimizer, loader = prepared(second, module=network(7), keep=0.8, noise=noise)
    second.load_checkpoint(path=tmp_path / "half.pt", module=again, optimizer=optimizer)
    assert torch.equal(weights(again), weights(module))
    assert second.get_epsilon(1e-5) == first.get_epsilon(1e-5)
    train(again, optimizer, loader)
    assert second.get_epsilon(1e-5) == pytest.approx(straight.get_epsilon(1e-5), abs=1e-9)


def test_r01_anchor_of_dp_sgd() -> None:
    for engine in (topagg_engine(),):
        engine.accountant.history = [(1.0, 0.01, 100)]
        assert engine.get_epsilon(1e-5) == pytest.approx(1.214, abs=0.01)
        engine.accountant.history = [(1.0, 0.01, 200)]
        assert engine.get_epsilon(1e-5) == pytest.approx(1.340, abs=0.01)


def test_r01_a_checkpoint_without_account_is_refused(tmp_path: Path) -> None:
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8)
    torch.save({"module_state_dict": network(7).state_dict()}, tmp_path / "bare.pt")
    before = weights(module)
    with pytest.raises(CheckpointError, match="does not say what was spent"):
        topagg_engine().load_checkpoint(path=tmp_path / "bare.pt", module=module, optimizer=optimizer)
    assert torch.equal(before, weights(module))


def test_r01_going_back_to_a_checkpoint_does_not_give_back_what_was_spent(tmp_path: Path) -> None:
    engine = topagg_engine()
    module, optimizer, loader = prepared(engine, keep=0.8)
    train(module, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "early.pt", module=module, optimizer=optimizer)
    early, spent_early = weights(module), engine.get_epsilon(1e-5)
    train(module, optimizer, loader)
    spent = engine.get_epsilon(1e-5)
    engine.load_checkpoint(path=tmp_path / "early.pt", module=module, optimizer=optimizer)
    assert torch.equal(early, weights(module))
    assert engine.get_epsilon(1e-5) == spent > spent_early
    other = topagg_engine()
    module, optimizer, loader = prepared(other, keep=0.8, noise_multiplier=3.0)
    train(module, optimizer, loader)
    before, spent = weights(module), other.get_epsilon(1e-5)
    with pytest.raises(CheckpointError, match="new engine"):
        other.load_checkpoint(path=tmp_path / "early.pt", module=module, optimizer=optimizer)
    assert torch.equal(before, weights(module)) and other.get_epsilon(1e-5) == spent


def test_r47_saved_names_carry_no_wrapper(tmp_path: Path) -> None:
    engine = topagg_engine()
    module, optimizer, _loader = prepared(engine, keep=0.8)
    engine.save_checkpoint(path=tmp_path / "saved.pt", module=module, optimizer=optimizer)
    content = torch.load(tmp_path / "saved.pt", weights_only=True)
    network().load_state_dict(content["module_state_dict"], strict=True)


def test_r75_half_precision_is_summed_in_single() -> None:
    module, optimizer, _loader = prepared(topagg_engine(), keep=0.8)
    images, labels = records(8)[:]
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(module(images), labels)
        loss.backward()
        optimizer.step()
    assert {p.summed_grad.dtype for p in optimizer.params} == {torch.float32}
    assert torch.isfinite(weights(module)).all()
    with pytest.raises(ConfigError, match="half precision"):
        prepared(topagg_engine(), module=network().to(torch.bfloat16), keep=0.8)


@pytest.mark.parametrize("method", ["topk-sgd", "clipped-sgd"])
def test_methods_without_noise_say_so(method: str) -> None:
    engine = topagg_engine()
    with pytest.warns(PrivacyWarning, match=f"{method} adds no noise"):
        module, optimizer, loader = prepared(engine, method=method, keep=0.8, noise_multiplier=0.0)
    train(module, optimizer, loader)
    assert engine.get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"keep": 0.0}, "keep is 0.0"),
        ({"keep": 1.5}, "keep is 1.5"),
        ({"method": "dpdl"}, "topk-gm-dp"),
        ({"select_by": "size"}, "norm, tensor-norm, dimension"),
        ({"noise": "secure"}, "float, integer"),
        ({"noise_multiplier": 0.0}, "private only with noise"),
        ({"noise_multiplier": -1.0}, "noise_multiplier is -1"),
        ({"noise_multiplier": math.nan}, "noise_multiplier is nan"),
        ({"noise_multiplier": 1.0, "method": "topk-sgd"}, "adds no noise"),
        ({"grad_sample_mode": "ghost"}, "ghost clipping never has the gradients"),
        ({"clipping": "per_layer"}, "clipping='flat'"),
        ({"noise": "integer", "poisson_sampling": False}, "Poisson lots only"),
        ({"noise": "integer", "noise_generator": torch.Generator()}, "operating system alone"),
        ({"noise": "integer", "noise_multiplier": 1e4}, "whole noise on"),
    ],
)
def test_refusals_name_value_rule_and_remedy(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        prepared(topagg_engine(), **settings)


def test_secure_mode_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"2021.*noise='integer'"):
        TopAggPrivacyEngine(secure_mode=True)


@pytest.mark.parametrize("noise", ["float", "integer"])
def test_a_target_epsilon_is_met(noise: str) -> None:
    engine, module = topagg_engine(), network()
    private, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(records(), batch_size=10),
        target_epsilon=3.0,
        target_delta=1e-5,
        epochs=2,
        max_grad_norm=1.0,
        keep=0.8,
        noise=noise,
    )
    train(private, optimizer, loader, epochs=2)
    assert 2.9 <= engine.get_epsilon(1e-5) <= 3.0


@pytest.mark.parametrize("noise", ["float", "integer"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_epsilon": math.nan}, "target_epsilon is nan"),
        ({"target_epsilon": math.inf}, "target_epsilon is inf"),
        ({"target_epsilon": 0.0}, "target_epsilon is 0"),
        ({"target_delta": 0.0}, "delta=0.0"),
        ({"target_delta": 1.0}, "delta=1.0"),
        ({"target_delta": 2.0}, "delta=2.0"),
        ({"target_delta": math.nan}, "delta=nan"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": math.nan}, "epochs is nan"),
    ],
)
def test_r28_r32_r39_targets_that_mean_nothing_are_refused(
    noise: str, changes: dict[str, Any], words: str
) -> None:
    """A NaN compares as False, so a search would end at any noise; a training of no step has none to find."""
    with pytest.raises(ConfigError, match=words):
        with_target(noise=noise, **changes)


def test_r28_a_delta_of_one_over_the_records_or_more_is_warned_of() -> None:
    with pytest.warns(PrivacyWarning, match="releasing a whole record"):
        with_target(target_delta=1 / 40)
    for delta in (0.0, 1.0, -1e-5, math.nan):
        with pytest.raises(ConfigError, match="delta="):
            topagg_engine().get_epsilon(delta)


@pytest.mark.parametrize("epochs", [1, 2, 0.25])
def test_r21_noise_is_for_every_step_of_the_epochs(epochs: float) -> None:
    """49 lots an epoch: 1 / (1 / 49) is below 49, and a step must not be lost to that."""
    engine, optimizer, loader = with_target(number=490, epochs=epochs)
    steps = math.ceil(epochs * 49)
    assert len(loader) == 49
    engine.accountant.history = [(optimizer.noise_multiplier, 1 / 49, steps)]
    assert 2.9 <= engine.get_epsilon(1e-5) <= 3.0


def with_target(*, number: int = 40, noise: str = "float", **changes: Any) -> tuple[Any, Any, Any]:
    """Engine, optimiser and loader that were made private for epsilon 3."""
    engine, module = topagg_engine(), network()
    usual: dict[str, Any] = {"target_epsilon": 3.0, "target_delta": 1e-5, "epochs": 2}
    _private, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(records(number), batch_size=10),
        max_grad_norm=1.0,
        keep=0.8,
        noise=noise,
        **(usual | changes),
    )
    return engine, optimizer, loader


def test_whole_numbers_are_bounded_and_noised() -> None:
    """What each record adds is on the grid and no longer than its units; the noise has its standard deviation."""
    _module, optimizer, _loader = prepared(
        topagg_engine(), module=nn.Linear(40, 50), keep=0.64, noise="integer", max_grad_norm=2.0
    )
    for p in optimizer.params:
        p.grad_sample = 10 * torch.randn(1, *p.shape, generator=seeded())
    optimizer.clip_and_accumulate()
    whole = torch.cat([p.summed_grad.flatten() for p in optimizer.params])
    assert whole.dtype == torch.int64
    assert 0.99 * optimizer.grid.units**2 < int(whole.square().sum()) <= optimizer.grid.units**2
    optimizer.add_noise()
    noise = torch.cat([p.grad.flatten() for p in optimizer.params]) - optimizer.grid.back(whole)
    assert noise.std().item() == pytest.approx(1.0 * 0.8 * 2.0, rel=0.07)


def test_optimizer_is_one_of_opacus() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = topagg_engine()
    assert isinstance(prepared(engine, keep=0.8)[1], DPOptimizer)


@pytest.mark.parametrize("keep", [1.0, 0.8])
def test_weights_in_double_precision_train(keep: float) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.inner(images.double())

    module, optimizer, loader = prepared(topagg_engine(), module=Scaled().double(), keep=keep)
    before = weights(module)
    train(module, optimizer, loader)
    assert weights(module).dtype == torch.float64 and not torch.equal(before, weights(module))
