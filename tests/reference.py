"""Slow, obvious twins of every fast kernel: plain loops and plain modules, compared on random inputs."""

from __future__ import annotations

import torch

from datalens.teachers.ensemble import TeacherEnsemble


def topk_sign_loop(grad_TBD, top_k, clip_bound, uniform_TBD):
    """Algorithm 2 with loops, given one draw from [-1, 1) for each coordinate; float32 like the kernel."""
    import numpy as np

    grad_TBD = np.asarray(grad_TBD, dtype=np.float32)
    vote_TBD = np.zeros(grad_TBD.shape, dtype=np.int8)
    failed_TB = np.zeros(grad_TBD.shape[:2], dtype=bool)
    for teacher, grad_BD in enumerate(grad_TBD):
        for image, grad in enumerate(grad_BD):
            if not all(np.isfinite(value) for value in grad):
                failed_TB[teacher, image] = True
                continue
            kept = sorted(range(len(grad)), key=lambda index: (-abs(grad[index]), index))[:top_k]
            clipped = {j: min(max(grad[j], np.float32(-clip_bound)), np.float32(clip_bound)) for j in kept}
            scale = max(abs(value) for value in clipped.values())
            for j, value in clipped.items():
                if value != 0:
                    below = np.float32(uniform_TBD[teacher][image][j]) < value / scale
                    vote_TBD[teacher, image, j] = 1 if below else -1
    return vote_TBD, failed_TB


def norm_topk_loop(grad_RD, keep):
    """Algorithm 4's NormTopK with loops: squares in float32, the target in float64, sums in exact fractions."""
    from fractions import Fraction

    import numpy as np

    grad_RD = np.asarray(grad_RD, dtype=np.float32)
    kept_RD = np.zeros_like(grad_RD)
    for record, grad in enumerate(grad_RD):
        with np.errstate(over="ignore", under="ignore"):
            square = [value * value for value in grad]
        if not all(np.isfinite(value) for value in square):
            continue
        exact = [Fraction(float(value)) for value in square]
        target, taken = Fraction(keep * float(sum(exact))), Fraction(0)
        for j in sorted(range(len(grad)), key=lambda j: (-square[j], j)):
            taken += exact[j]
            if taken > target:
                break
            kept_RD[record, j] = grad[j] if square[j] else 0
    return kept_RD


def dimension_topk_loop(grad_RD, keep):
    """The share of the coordinates that has the largest squares in float32, one row after the other."""
    import numpy as np

    grad_RD = np.asarray(grad_RD, dtype=np.float32)
    kept_RD = np.zeros_like(grad_RD)
    for record, grad in enumerate(grad_RD):
        with np.errstate(over="ignore", under="ignore"):
            square = [value * value for value in grad]
        if all(np.isfinite(value) for value in square):
            order = sorted(range(len(grad)), key=lambda j: (-square[j], j))
            for j in order[: max(1, int(keep * len(grad)))]:
                kept_RD[record, j] = grad[j] if square[j] else 0
    return kept_RD


def tally_loop(vote_TBD):
    """Sum of votes over teachers, one at a time."""
    total = [[0] * len(row) for row in vote_TBD[0]]
    for vote_BD in vote_TBD:
        for image, row in enumerate(vote_BD):
            for j, value in enumerate(row):
                total[image][j] += int(value)
    return total


def rounded_gaussian_magnitude(draw_bits, stddev):
    """The magnitude that a draw from [0, 2**191) stands for: how many P(|X| >= j) lie above it."""
    from mpmath import erfc, mp, mpf, sqrt

    with mp.workprec(600):
        magnitude = 0
        while True:
            tail = erfc((magnitude + mpf(1) / 2) / (mpf(stddev) * sqrt(2)))
            if round_half_up(tail * mpf(2) ** 191) <= draw_bits:
                return magnitude
            magnitude += 1


def round_half_up(value):
    """Nearest integer of an mpmath number."""
    from mpmath import floor, mpf

    return int(floor(value + mpf(1) / 2))


def threshold_loop(noisy_BD, num_teachers, vote_threshold):
    """Algorithm 3's threshold, coordinate by coordinate, in exact decimals."""
    from decimal import Decimal

    cut = Decimal(str(vote_threshold)) * num_teachers
    directions = {(True, False): 1, (False, True): -1}
    return [[directions.get((value >= cut, value <= -cut), 0) for value in row] for row in noisy_BD]


def rotation_loop(x, signs):
    """Signs, then the Hadamard matrix written out from its definition: (-1)^(number of common one-bits)."""
    width = len(signs)
    padded = [float(value) for value in x] + [0.0] * (width - len(x))
    return [
        sum((-1) ** (row & j).bit_count() * signs[j] * padded[j] for j in range(width)) / width**0.5
        for row in range(width)
    ]


def klevel_loop(rotated, levels, clip_bound, uniform):
    """Algorithm 5 for one gradient after its rotation: between which two levels, and which of them."""
    import math

    if not all(math.isfinite(value) for value in rotated):
        return [0] * len(rotated)
    grid = [-clip_bound + 2 * r * clip_bound / (levels - 1) for r in range(levels)]
    votes = []
    for value, draw in zip(rotated, uniform, strict=True):
        value = min(max(value, -clip_bound), clip_bound)
        r = max(r for r in range(levels - 1) if grid[r] <= value or r == 0)
        up = draw < (value - grid[r]) / (grid[r + 1] - grid[r])
        votes.append(2 * (r + up) - (levels - 1))
    return votes


def sketch_loop(tally, bucket, sign, buckets):
    """A count sketch of one image, one coordinate and row at a time."""
    table = [[0] * buckets for _ in bucket]
    for row in range(len(bucket)):
        for j, value in enumerate(tally):
            table[row][bucket[row][j]] += sign[row][j] * value
    return table


def unsketch_loop(table, bucket, sign):
    """The median over rows of what each row says of a coordinate."""
    import statistics

    return [
        statistics.median(sign[row][j] * table[row][bucket[row][j]] for row in range(len(table)))
        for j in range(len(bucket[0]))
    ]


class PaperTeacherTwin(torch.nn.Module):
    """One teacher of the paper as a plain module: label planes really convolved, modules of PyTorch."""

    def __init__(self, image_shape: tuple[int, ...], num_classes: int, channels: int, units: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        size, width = image_shape[1], image_shape[0]
        out = width + num_classes
        self.convs, self.norms = torch.nn.ModuleList(), torch.nn.ModuleList()
        while len(self.convs) < 2 or (size > 8 and size % 2 == 0):
            self.convs.append(torch.nn.Conv2d(width + num_classes, out, 5, stride=2, padding=2))
            first = len(self.convs) == 1
            norm = torch.nn.BatchNorm2d(out, track_running_stats=False)
            self.norms.append(torch.nn.Identity() if first else norm)
            size, width = size // 2, out
            out = channels * 2 ** (len(self.convs) - 1) + num_classes
        self.hidden = torch.nn.Linear(width * size * size + num_classes, units)
        self.hidden_norm = torch.nn.BatchNorm1d(units, track_running_stats=False)
        self.out = torch.nn.Linear(units + num_classes, 1)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        onehot = torch.nn.functional.one_hot(labels, self.num_classes).to(images.dtype)
        x = images
        for conv, norm in zip(self.convs, self.norms, strict=True):
            planes = onehot[:, :, None, None].expand(-1, -1, *x.shape[2:])
            x = torch.nn.functional.leaky_relu(norm(conv(torch.cat([x, planes], 1))), 0.2)
        x = self.hidden(torch.cat([x.flatten(1), onehot], 1))
        x = torch.nn.functional.leaky_relu(self.hidden_norm(x), 0.2)
        return self.out(torch.cat([x, onehot], 1))[:, 0]

    def copy_teacher(self, params: dict[str, torch.Tensor]) -> None:
        """Take over one teacher's parameters (without axis T) from the stacked layout."""
        classes = self.num_classes
        with torch.no_grad():
            for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
                image = params[f"conv{i}.image"].view(conv.out_channels, -1, 5, 5)
                label = params[f"conv{i}.label"].view(conv.out_channels, classes, 5, 5)
                conv.weight.copy_(torch.cat([image, label], 1))
                conv.bias.copy_(params[f"conv{i}.bias"])
                if i:
                    norm.weight.copy_(params[f"conv{i}.scale"])
                    norm.bias.copy_(params[f"conv{i}.shift"])
            self.hidden.weight.copy_(torch.cat([params["hidden.image"].T, params["hidden.label"].T], 1))
            self.hidden.bias.copy_(params["hidden.bias"])
            self.hidden_norm.weight.copy_(params["hidden.scale"])
            self.hidden_norm.bias.copy_(params["hidden.shift"])
            self.out.weight.copy_(torch.cat([params["out.image"].T, params["out.label"].T], 1))
            self.out.bias.copy_(params["out.bias"])


def paper_teacher_step(
    net: PaperTeacherTwin,
    optimiser: torch.optim.Optimizer,
    real: tuple[torch.Tensor, torch.Tensor],
    fake: tuple[torch.Tensor, torch.Tensor],
) -> None:
    """One optimiser step of one teacher on its present records and the fakes."""
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    real_logits, fake_logits = net(*real), net(*fake)
    loss = loss_of(real_logits, torch.ones_like(real_logits))
    loss = loss + loss_of(fake_logits, torch.zeros_like(fake_logits))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def paper_teacher_input_gradient(
    net: PaperTeacherTwin, fake: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """+d (sum of log D) / d x for one teacher, ``[B, D]``."""
    images = fake[0].clone().requires_grad_()
    torch.nn.functional.logsigmoid(net(images, fake[1])).sum().backward()
    assert images.grad is not None
    return images.grad.flatten(1)


def kernel_gradient(shards, fakes, bandwidth):
    """Kernel-density teachers, one record at a time."""
    teachers, fake_rows = len(shards.labels_TR), fakes.images_BCHW.flatten(1)
    grad = torch.zeros(teachers, *fake_rows.shape)
    for t in range(teachers):
        for b, fake in enumerate(fake_rows):
            own = [
                record.flatten()
                for record, label, there in zip(
                    shards.images_TRCHW[t], shards.labels_TR[t], shards.present_TR[t], strict=True
                )
                if there and label == fakes.labels_B[b]
            ]
            if own:
                log_weights = torch.stack(
                    [-(record - fake).square().sum() / (2 * bandwidth) for record in own]
                )
                weights = torch.softmax(log_weights, 0)
                grad[t, b] = sum(w * record for w, record in zip(weights, own, strict=True)) - fake
    return grad


def matching_gradient(shards, fakes, bandwidth, gumbel):
    """Matching teachers, one record at a time."""
    teachers, fake_rows = len(shards.labels_TR), fakes.images_BCHW.flatten(1)
    grad = torch.zeros(teachers, *fake_rows.shape)
    for t in range(teachers):
        matched = {b: [] for b in range(len(fake_rows))}
        for r in range(shards.labels_TR.shape[1]):
            if not shards.present_TR[t, r]:
                continue
            record = shards.images_TRCHW[t, r].flatten()
            scores = {
                b: float(gumbel[t, r, b] - (record - fake).square().sum() / (2 * bandwidth))
                for b, fake in enumerate(fake_rows)
                if fakes.labels_B[b] == shards.labels_TR[t, r]
            }
            if scores:
                matched[max(scores, key=lambda b: scores[b])].append(record)
        for b, records in matched.items():
            if records:
                grad[t, b] = torch.stack(records).mean(0) - fake_rows[b]
    return grad


def strongest_images_loop(grad_TBD, most):
    """Of each teacher the images of largest gradient, one at a time; what is not finite ranks last."""
    import math

    chosen = []
    for grad_BD in grad_TBD.tolist():
        norms = [sum(value * value for value in row) for row in grad_BD]
        norms = [norm if math.isfinite(norm) else -1.0 for norm in norms]
        order = sorted(range(len(norms)), key=lambda image: (-norms[image], image))
        chosen.append(sorted(order[:most]))
    return chosen


def tally_of_images_loop(vote_TSD, image_TS, num_images):
    """Sum of votes on chosen images, one vote at a time."""
    total = [[0] * vote_TSD.shape[2] for _ in range(num_images)]
    for votes, images in zip(vote_TSD.tolist(), image_TS.tolist(), strict=True):
        for row, image in zip(votes, images, strict=True):
            for j, value in enumerate(row):
                total[image][j] += value
    return total


def teacher_states(ensemble: TeacherEnsemble) -> dict[str, torch.Tensor]:
    """A copy of all teachers' states, stacked."""
    parts = [part.tensors for part in ensemble.parts()]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def grid_loop(rows, norm_bound, units, dim):
    """Real vectors on a grid of whole numbers, one coordinate at a time, lengths bounded in whole numbers."""
    import math

    scale = math.sqrt(units**2 - dim / 12 - 3 * units) / norm_bound
    out = []
    for row in rows:
        length = math.sqrt(math.fsum(float(value) ** 2 for value in row))
        if not math.isfinite(length):
            out.append([0] * len(row))
            continue
        factor = scale * min(1.0, norm_bound / length) if length else scale
        whole = [round(float(value) * factor) for value in row]
        while sum(value**2 for value in whole) > units**2:
            shrink = min(units / math.sqrt(sum(value**2 for value in whole)), 1 - 2**-20)
            whole = [math.trunc(value * shrink) for value in whole]
        out.append(whole)
    return out


def merf_distance_loop(features, row, weight):
    """|row - weight * mean feature|^2 without the pairs of an image with itself and without |row|^2."""
    count = len(features)
    match = sum(sum(a * b for a, b in zip(row, phi, strict=True)) for phi in features) / count
    pairs = [
        sum(a * b for a, b in zip(features[i], features[j], strict=True))
        for i in range(count)
        for j in range(count)
        if i != j
    ]
    return weight**2 * sum(pairs) / len(pairs) - 2 * weight * match


def discriminator_logits_loop(parameters, images_TRD, labels_TR):
    """Small conditional discriminators, one image and one unit at a time."""
    logits = torch.zeros(images_TRD.shape[:2])
    weights, hidden, classes, last = (parameters[k].detach() for k in ("image", "hidden", "class", "logit"))
    for t in range(len(images_TRD)):
        for r in range(images_TRD.shape[1]):
            total = float(last[t, 0])
            for h in range(weights.shape[2]):
                unit = float((images_TRD[t, r] * weights[t, :, h]).sum() + hidden[t, 0, h])
                unit = unit if unit > 0 else 0.2 * unit
                total += unit * float(classes[t, int(labels_TR[t, r]), h])
            logits[t, r] = total
    return logits


def bin_votes_loop(grad_TBD, basis_DP, clip_bound, num_bins):
    """G-PATE's votes, one projected coordinate at a time, in double precision; a list of bins, -1 for none."""
    import math

    bins = []
    for grad_BD in grad_TBD.double().tolist():
        bins.append([])
        for grad in grad_BD:
            if not all(math.isfinite(value) for value in grad) or not any(grad):
                bins[-1].append([-1] * basis_DP.shape[1])
                continue
            norm = math.sqrt(sum(value * value for value in grad))
            row = []
            for p in range(basis_DP.shape[1]):
                value = sum(g / norm * float(basis_DP[d, p]) for d, g in enumerate(grad))
                value = min(max(value, -clip_bound), clip_bound)
                row.append(min(num_bins - 1, math.floor((value + clip_bound) / (2 * clip_bound) * num_bins)))
            bins[-1].append(row)
    return bins
