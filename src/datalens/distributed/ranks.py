"""The processes (ranks) that train one run together, and the few things that they tell each other.

``torchrun`` starts them and says in the environment who each of them is. The first one leads; see
:mod:`datalens.training.crew` for what it has the others do. A single process needs none of this: it imports no
``torch.distributed`` and every method returns at once.

Nothing is pickled: numbers travel as tensors, words as JSON.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from datalens.distributed.place import Place
from datalens.errors import RunError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

PATIENCE = timedelta(hours=1)
"""How long a rank waits for one that is alive but says nothing. One that has ended is noticed at once."""

TIME_TO_MEET = timedelta(minutes=5)
"""How long ranks look for each other when they start, which they all do at once and before they read any data."""

NOTHING_TO_DO: dict[str, str | bool] = {"do": "end", "stopped": False}
"""What the first rank tells the others where a run is finished already."""


class Ranks:
    """One process among those that train a run together. Make it with :meth:`alone` or :meth:`join`.

    Every method but the properties must be called by all ranks, in the same order.

    Attributes:
        place: which one this is.

    Raises:
        RunError: another rank has ended, or says nothing for too long.

    >>> ranks = Ranks.alone()
    >>> ranks.is_first, ranks.world_size, ranks.largest(3), ranks.gather("mine")
    (True, 1, 3, ['mine'])
    """

    def __init__(self, place: Place, devices: frozenset[str] = frozenset()) -> None:
        self.place = place
        self._devices = devices

    @classmethod
    def alone(cls) -> Ranks:
        """A single process."""
        return cls(Place())

    @classmethod
    def join(cls, patience: timedelta = PATIENCE) -> Ranks:
        """Meet the other processes that ``torchrun`` started; alone where there are none.

        They talk through gloo, and through nccl where the GPUs suffice for one each.

        Raises:
            RunError: they cannot be reached.
        """
        place = Place.from_environment()
        if place.world_size == 1:
            return cls(place)
        import torch
        import torch.distributed as dist
        from torch.distributed import PrefixStore  # pyright: ignore[reportPrivateImportUsage]
        from torch.distributed.rendezvous import rendezvous

        has_nccl = torch.cuda.is_available() and dist.is_nccl_available()
        has_nccl = has_nccl and torch.cuda.device_count() >= place.local_size
        if has_nccl:
            torch.cuda.set_device(place.local_rank)
        ranks = cls(place, frozenset({"cpu", "cuda"} if has_nccl else {"cpu"}))
        with ranks._explained():
            store, rank, world_size = next(rendezvous("env://", timeout=min(patience, TIME_TO_MEET)))
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if has_nccl else "gloo",
                # torchrun may keep its store when it starts processes again: addresses of dead ones are in it
                store=PrefixStore(f"datalens/{place.restarts}", store),
                rank=rank,
                world_size=world_size,
                timeout=patience,
            )
        return ranks

    def close(self) -> None:
        """Leave; a rank that still waits for this one is told by an error."""
        if self._devices:
            import torch.distributed as dist

            self._devices = frozenset()
            dist.destroy_process_group()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.close()
        if error is None:  # an error is to be told at once, before torchrun ends this process too
            gc.collect()  # the group's threads must end now: one that lives until Python has ended aborts the process

    # -- who ----------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Which one, from 0."""
        return self.place.rank

    @property
    def world_size(self) -> int:
        """How many."""
        return self.place.world_size

    @property
    def is_first(self) -> bool:
        """Whether this one leads."""
        return self.place.rank == 0

    def device(self, name: str) -> str:
        """The device that ``name`` means here: of several GPUs each rank takes its own.

        >>> Ranks(Place(3, 4, 1, 2)).device("cpu")
        'cpu'
        """
        if name != "cuda" or self.world_size == 1:
            return name
        import torch

        return f"cuda:{self.place.local_rank % max(1, torch.cuda.device_count())}"

    def span(self, count: int, piece: int) -> tuple[int, int]:
        """(first, last + 1) of ``count`` things for this rank: whole pieces, as evenly as they go.

        >>> [Ranks(Place(rank, 3, rank, 3)).span(100, 20) for rank in range(3)]
        [(0, 20), (20, 60), (60, 100)]
        """
        pieces = -(-count // piece)
        ends = [piece * (pieces * rank // self.world_size) for rank in (self.rank, self.rank + 1)]
        return min(ends[0], count), min(ends[1], count)

    # -- what they tell each other ------------------------------------------------------------------------------

    def sum_(self, tensor: Tensor) -> None:
        """Put the sum over all ranks in place of each one's integers, which leaves no rounding to argue about."""
        if self.world_size > 1:
            import torch.distributed as dist

            with self._explained(), self._reachable(tensor) as reached:
                dist.all_reduce(reached)

    def share_(self, tensor: Tensor) -> None:
        """Put the first rank's values in place of everybody's."""
        if self.world_size > 1:
            import torch.distributed as dist

            with self._explained(), self._reachable(tensor) as reached:
                dist.broadcast(reached, 0)

    def largest(self, number: int) -> int:
        """The largest of the ranks' numbers; also the place where they wait for each other."""
        if self.world_size == 1:
            return number
        import torch
        import torch.distributed as dist

        value = torch.tensor(number)
        with self._explained():
            dist.all_reduce(value, dist.ReduceOp.MAX)
        return int(value)

    def gather(self, text: str) -> list[str]:
        """Every rank's text, in order."""
        if self.world_size == 1:
            return [text]
        import torch

        content = text.encode()
        texts = torch.zeros(self.world_size, self.largest(len(content)) + 1, dtype=torch.uint8)
        texts[self.rank, : len(content)] = _as_tensor(content)
        self.sum_(texts)  # JSON and names hold no zero byte
        return [bytes(row.tolist()).rstrip(b"\0").decode() for row in texts]

    def tell(self, message: dict[str, Any]) -> None:
        """Say something to all others, who :meth:`hear` it; for the first rank."""
        if self.world_size > 1:
            import torch

            content = json.dumps(message).encode()
            self.share_(torch.tensor(len(content)))
            self.share_(_as_tensor(content))

    def hear(self) -> dict[str, Any]:
        """What the first rank says with :meth:`tell`."""
        import torch

        length = torch.tensor(0)
        self.share_(length)
        content = torch.empty(int(length), dtype=torch.uint8)
        self.share_(content)
        return json.loads(bytes(content.tolist()))

    @contextmanager
    def _reachable(self, tensor: Tensor) -> Iterator[Tensor]:
        """The tensor itself where the ranks can exchange it from its device, else by way of the CPU."""
        if tensor.device.type in self._devices:
            yield tensor
            return
        on_cpu = tensor.cpu()
        yield on_cpu
        tensor.copy_(on_cpu)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """PyTorch's errors, whose words name sockets, as one line."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).split("\n")[0].rpartition("] ")[2].split(". ")[0]  # without the line of C++
            raise RunError(
                f"another process of this run than rank {self.rank} of {self.world_size} has ended or cannot be "
                f"reached ({reason:.60}); what was released is kept: see what that one says, then resume"
            ) from None


def _as_tensor(content: bytes) -> torch.Tensor:
    import torch

    return torch.tensor(list(content), dtype=torch.uint8)
