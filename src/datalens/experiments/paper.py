"""What the paper prints for DataLens: accuracies as shares, at delta 1e-5.

Source: Wang et al. 2021, the tables named. Accuracies are its own protocol's (the best test epoch of many), so they
stand beside ours and never in one column.
"""

from __future__ import annotations

TABLE_1 = {
    "mnist": {1.0: 0.7123, 10.0: 0.8066},
    "fashion-mnist": {1.0: 0.6478, 10.0: 0.7061},
    "celeba-gender": {1.0: 0.7058, 10.0: 0.7287},
    "celeba-hair": {1.0: 0.6061, 10.0: 0.6224},
    "places365": {1.0: 0.4313, 10.0: 0.4875},
}
"""By data set and epsilon."""

TABLE_2 = {
    "mnist": {0.2: 0.2344, 0.4: 0.2919, 0.6: 0.4201, 0.8: 0.6485, 1.0: 0.7123},
    "fashion-mnist": {0.2: 0.2226, 0.4: 0.3863, 0.6: 0.4314, 0.8: 0.5534, 1.0: 0.6478},
}
"""Small epsilons, likewise."""

TABLE_12 = {
    "mnist": {1.0: (4.37, 186.06), 10.0: (5.78, 173.5)},
    "fashion-mnist": {1.0: (3.93, 194.98), 10.0: (4.58, 167.68)},
    "celeba-gender": {1.0: (1.18, 297.73), 10.0: (1.42, 320.84)},
}
"""Inception Score and FID by data set and epsilon; table 3 is the Inception Score alone. What is called CelebA there
is CelebA-Gender, as the text beside Table 3 says."""

TABLE_12_REAL = {"mnist": (9.86, 1.04), "fashion-mnist": (9.01, 1.54), "celeba-gender": (1.88, 2.38)}
"""Inception Score and FID of the real images."""

TABLE_4: dict[str, dict[str, dict[float, float]]] = {
    "top_k": {
        "mnist": {100: 0.5889, 200: 0.7123, 300: 0.6753},
        "fashion-mnist": {100: 0.5738, 200: 0.6478, 300: 0.6088},
        "celeba-gender": {500: 0.6922, 700: 0.7058, 900: 0.6811},
        "celeba-hair": {500: 0.5792, 700: 0.6061, 900: 0.5769},
    },
    "num_teachers": {
        "mnist": {2000: 0.5841, 3000: 0.7061, 4000: 0.7123},
        "fashion-mnist": {2000: 0.5608, 3000: 0.5952, 4000: 0.6478},
        "celeba-gender": {4000: 0.6378, 6000: 0.7058, 8000: 0.6936},
        "celeba-hair": {4000: 0.5669, 6000: 0.5835, 8000: 0.6061},
    },
    "vote_threshold": {
        "mnist": {0.0: 0.6361, 0.1: 0.645, 0.3: 0.689, 0.5: 0.6921, 0.7: 0.7123, 0.9: 0.6956},
        "fashion-mnist": {0.0: 0.5859, 0.1: 0.6103, 0.3: 0.606, 0.5: 0.6122, 0.7: 0.6213, 0.9: 0.6478},
        "celeba-gender": {0.5: 0.644, 0.6: 0.6789, 0.7: 0.6922, 0.8: 0.6861, 0.85: 0.7058, 0.9: 0.6381},
        "celeba-hair": {0.5: 0.4957, 0.6: 0.5669, 0.7: 0.5612, 0.8: 0.6022, 0.85: 0.5835, 0.9: 0.6061},
    },
}
"""By setting, data set and value, at epsilon 1: the best over the other settings."""

TABLE_5 = {
    "mnist": {"TopAgg": 0.7123, "D2P-Fed": 0.1424, "FetchSGD": 0.6935},
    "fashion-mnist": {"TopAgg": 0.6478, "D2P-Fed": 0.1667, "FetchSGD": 0.6387},
    "celeba-gender": {"TopAgg": 0.7058, "D2P-Fed": 0.4445, "FetchSGD": 0.6552},
    "celeba-hair": {"TopAgg": 0.6061, "D2P-Fed": 0.2893, "FetchSGD": 0.4926},
}
"""By data set and compression, at epsilon 1."""

TABLE_6 = {
    "mnist": {"TopAgg": 338.34, "D2P-Fed": 492.43, "FetchSGD": 785.34},
    "fashion-mnist": {"TopAgg": 340.84, "D2P-Fed": 471.02, "FetchSGD": 775.35},
    "celeba-gender": {"TopAgg": 1196.6, "D2P-Fed": 3683.22, "FetchSGD": 2622.4},
    "celeba-hair": {"TopAgg": 1120.59, "D2P-Fed": 8092.5, "FetchSGD": 2620.63},
}
"""Seconds an "epoch", which is a generator step, on one Tesla T4, likewise."""

TABLE_7 = {
    "mnist": {
        "full": 0.7123,
        "without top-k": 0.517,
        "without stochastic quantisation": 0.6741,
        "without threshold": 0.6361,
    },
    "fashion-mnist": {
        "full": 0.6478,
        "without top-k": 0.4775,
        "without stochastic quantisation": 0.6159,
        "without threshold": 0.5859,
    },
    "celeba-gender": {
        "full": 0.7058,
        "without top-k": 0.6134,
        "without stochastic quantisation": 0.6889,
        "without threshold": 0.686,
    },
    "celeba-hair": {
        "full": 0.6061,
        "without top-k": 0.3318,
        "without stochastic quantisation": 0.5325,
        "without threshold": 0.5504,
    },
}
"""By data set and what was removed, at epsilon 1."""

RUNTIME = {2000: 149.92, 4000: 322.17}
"""Seconds a generator step on one RTX 2080 Ti, MNIST at epsilon 1, by number of teachers."""
