"""What stands below the figures and claims: protocol, seeds, what the columns mean, what the paper says."""

from __future__ import annotations

FIGURE_4 = (
    "Seed 0; a column a class. The last layer of the quick recipes moves and tones images at random.",
    'Read from grids/ beside the store, where the cells of table1 leave them; "no grid": not there. Copy that folder '
    "with the store, or run `datalens reproduce table1 --seeds 1` with a new one.",
)
THEOREM_6 = (
    "Terms and corrections: docs/theory.md. Below M^2: whether the bound says more than the assumption does.",
    "One seed where teachers are asked, the rest is arithmetic. The paper uses k 200 at epsilon 1, 350 at 10.",
)
CLIP = (
    "100 compact teachers or 20 of the paper's, k 200 of 784, one seed; the paper clips at 1e-5 and prints no "
    "numbers for this claim (section 5.3).",
    "Share saturated: of the kept coordinates, those at the clip or beyond. Certainty: the mean size of a kept "
    "coordinate after the clip and the division by the largest; 1 is a certain sign, 0 a fair coin. Agreement: root "
    "mean square of the sum of votes over N; by chance: the same if every vote were a fair coin.",
)
Q_GROWTH = (
    "Arithmetic, without seeds: one image of d coordinates, k kept, noise sigma, N teachers. q: the chance that "
    "anything but the likeliest direction is released. The paper (section 4.2) says that it grows with d, and prints "
    "no numbers for it.",
    "Last two columns: epsilon at delta 1e-5 of 20 such releases, without and with this q (Theorems 4 and 5, "
    "corrected). Silent: no teacher votes; unanimous: all agree on k coordinates or on all. See docs/theory.md.",
)
