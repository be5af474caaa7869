"""What happens around the steps of a training, whichever it is: signals, progress, notes and TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalens.cli.options import data_words
from datalens.cli.output import Output
from datalens.cli.progress import TrainingProgress
from datalens.cli.stopping import StopRequest, interruption_told

if TYPE_CHECKING:
    from datalens.training.progress import Progress
    from datalens.training.tensorboard import TensorBoard


@dataclass(frozen=True)
class Watch:
    """Who hears of a training.

    Attributes:
        output: of the command; hears the notes.
        stop: asked before every step.
        progress: shows how far it is.
        board: writes it down, where that was asked for.
    """

    output: Output
    stop: StopRequest
    progress: TrainingProgress
    board: TensorBoard | None = None

    def tell(self, progress: Progress) -> None:
        """Take the state after a step."""
        self.progress.tell(progress)
        if self.board is not None:
            self.board.tell(progress)

    @property
    def hears(self) -> dict[str, Any]:
        """The words of ``fit`` and ``resume`` for whoever watches."""
        return {"tell": self.tell, "tell_note": self.output.warn, "stop": self.stop}


def require_board(options: dict[str, Any]) -> None:
    """What ``--tensorboard`` needs is there, before any data are read.

    Raises:
        MissingExtraError: it is not.
    """
    if options["tensorboard"]:
        from datalens.training.tensorboard import writer_kind

        writer_kind()


@contextmanager
def watched(
    source: str, run: Path, options: dict[str, Any], output: Output, command: str = "train"
) -> Iterator[Watch]:
    """A training during which the first signal stops it after its step, and a second one says what is left of it.

    Args:
        source: as the command has it.
        run: its folder.
        options: of the command; ``tensorboard`` among them.
        output: hears the notes.
        command: that goes on with the run.
    """
    with ExitStack() as stack:
        stack.enter_context(interruption_told(source, run, data_words(options), command))
        stop = stack.enter_context(StopRequest())
        board = None
        if options["tensorboard"]:
            from datalens.training.tensorboard import TensorBoard

            board = stack.enter_context(TensorBoard(run))
        progress = stack.enter_context(TrainingProgress(quiet=output.quiet, verbose=output.verbose))
        yield Watch(output, stop, progress, board)
